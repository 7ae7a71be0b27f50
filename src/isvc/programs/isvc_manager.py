"""`isvc-manager`: KServe's controller manager. Flags, lease and webhooks are those of the manager it stands in for."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from isvc.api import InferenceService
from isvc.api.completion import read
from isvc.api.kinds import ISVC_MANAGER
from isvc.api.resources import INFERENCE_SERVICES
from isvc.programs import flags, program
from isvc.programs.controllers import controllers_of
from isvc.programs.options import Options
from isvc.programs.program import Program
from isvc.programs.webhooks import ISVC_WEBHOOKS
from isvc.toolkit import logs

F = TypeVar("F", bound=Callable[..., Any])


def _prepare() -> None:
    """Builds the decoder of services, which the first one would wait for."""
    read(InferenceService, INFERENCE_SERVICES.manifest({"name": "sample"}, spec={"predictor": {}}))


PROGRAM: Final = Program(
    name=ISVC_MANAGER,
    lease="kserve-controller-manager-leader-lock",
    webhook_service="kserve-webhook-server-service",
    certificate="kserve-webhook-server-cert",
    event_source="v1beta1Controllers",
    webhooks=ISVC_WEBHOOKS,
    controllers=controllers_of(ISVC_MANAGER),
    prepare=_prepare,
)


log = logging.getLogger(__name__)
WITHIN_NAMESPACES: Final = (
    "acting in the namespaces %s alone: ClusterServingRuntimes, ClusterStorageContainers and LocalModelCaches are not "
    "read, optional kinds that are installed later are found within two minutes, and no caBundle is set"
)


def _companion_flags(name: str, port: int, metrics: str) -> Callable[[F], F]:
    """Returns the flags of another manager in this process; `_companion` reads them."""
    options = (
        click.option(
            f"--with-{name}",
            default=False,
            help=f"Run {name}-manager in this process, too: for small clusters.",
            **flags.SWITCH,
        ),
        click.option(f"--{name}-webhook-port", default=port, show_default=True, help="The port of its webhooks."),
        click.option(f"--{name}-webhook-cert-dir", default="", help="As --webhook-cert-dir, for its webhooks."),
        click.option(
            f"--{name}-metrics-addr",
            type=flags.address,
            default=metrics,
            show_default=True,
            help="Where its metrics are served, over TLS and to whom may read them; 0 for nowhere.",
        ),
    )
    return flags.add_options(options)


@click.command(cls=flags.GoCommand, context_settings={"help_option_names": ["-h", "--help"]})
@flags.shared_flags(PROGRAM.defaults)
@click.option("--metrics-secure", default=False, help="Serve metrics over TLS, to whom may read them.", **flags.SWITCH)
@_companion_flags("llmisvc", 9444, ":8443")
@_companion_flags("localmodel", 9445, "0")
def main(with_llmisvc: bool, with_localmodel: bool, **given: Any) -> None:
    """Run the InferenceService, InferenceGraph and TrainedModel controllers, and their webhooks.

    The cluster is found through KUBECONFIG, ~/.kube/config, or the service account of the pod. POD_NAMESPACE names
    the namespace of the configuration and of the lease (kserve).
    """
    logs.set_up(flags.log_level(given))
    options = replace(flags.options_from(PROGRAM.defaults, given), metrics_secure=given["metrics_secure"])
    if options.namespaces:
        log.warning(WITHIN_NAMESPACES, ", ".join(options.namespaces))
    if options.namespaces and with_localmodel:
        raise click.UsageError("nodes and volumes belong to no namespace: --with-localmodel takes the whole cluster")
    programs = {PROGRAM: options}
    if with_llmisvc:
        from isvc.programs import llmisvc_manager  # most run without

        llmisvc_manager.warn_of_limits(options)
        llm = llmisvc_manager.llm_options(os.environ)
        programs[llmisvc_manager.PROGRAM] = replace(_companion(options, given, "llmisvc"), llm=llm)
    if with_localmodel:
        from isvc.programs import localmodel_manager

        programs[localmodel_manager.PROGRAM] = _companion(options, given, "localmodel")
    flags.run_or_exit(PROGRAM.name, program.build_and_run(programs))


def _companion(options: Options, given: Mapping[str, Any], name: str) -> Options:
    """Returns the options of another manager in this process: its own addresses and certificate, all else as here."""
    folder = given[f"{name}_webhook_cert_dir"]
    return replace(
        options,
        health_probes=None,
        metrics=given[f"{name}_metrics_addr"],
        metrics_secure=True,
        webhooks=options.webhooks._replace(port=given[f"{name}_webhook_port"]),
        webhook_cert_dir=Path(folder) if folder else None,
    )
