"""`localmodel-manager`: the manager of local model caches. Flags, lease and webhooks are those of KServe's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import click

from isvc.api.kinds import LOCALMODEL_MANAGER
from isvc.programs import flags, program
from isvc.programs.controllers import controllers_of
from isvc.programs.model_copies import count_copies
from isvc.programs.program import Program
from isvc.programs.webhooks import LOCALMODEL_WEBHOOKS
from isvc.toolkit import logs

PROGRAM: Final = Program(
    name=LOCALMODEL_MANAGER,
    lease="kserve-local-model-manager-leader-lock",
    webhook_service="localmodel-webhook-server-service",
    certificate="localmodel-webhook-server-cert",
    event_source="LocalModelController",
    webhooks=LOCALMODEL_WEBHOOKS,
    controllers=controllers_of(LOCALMODEL_MANAGER),
    meters=(count_copies,),
)


@click.command(cls=flags.GoCommand, context_settings={"help_option_names": ["-h", "--help"]})
@flags.shared_flags(PROGRAM.defaults)
@click.option("--metrics-secure", default=False, help="Serve metrics over TLS, to whom may read them.", **flags.SWITCH)
def main(metrics_secure: bool, **given: Any) -> None:
    """Run the controllers of LocalModelCaches and LocalModelNamespaceCaches, and their webhooks.

    The cluster is found through KUBECONFIG, ~/.kube/config, or the service account of the pod. POD_NAMESPACE names
    the namespace of the configuration and of the lease (kserve).
    """
    logs.set_up(flags.log_level(given))
    options = replace(flags.options_from(PROGRAM.defaults, given), metrics_secure=metrics_secure)
    if options.namespaces:
        raise click.UsageError("nodes and volumes belong to no namespace: --namespaces cannot be used here")
    flags.run_or_exit(PROGRAM.name, program.build_and_run({PROGRAM: options}))
