"""`llmisvc-manager`: the controller manager of LLMInferenceService. Flags, lease and webhooks are those of KServe's."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click

from isvc.api.defaults.llm import default_llm_service
from isvc.api.kinds import LLMISVC_MANAGER
from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.programs import flags, program
from isvc.programs.controllers import controllers_of
from isvc.programs.migration import migrate_stored_versions, remove_variant_autoscalings
from isvc.programs.options import LLMOptions, Options
from isvc.programs.program import Program
from isvc.programs.webhooks import LLM_WEBHOOKS
from isvc.serving.config import Config
from isvc.serving.environment import PRESET_PREFIX, SYSTEM_NAMESPACE, WILDCARD_LABEL
from isvc.serving.llm.presets import Settings, render_preset
from isvc.serving.llm.sample import sample_service
from isvc.toolkit import logs
from isvc.toolkit.address import Address
from isvc.wire.x509.issue import issue_self_signed


def _prepare() -> None:
    """Builds what the first service would wait for: decoders and tables of types."""
    service = LLM_INFERENCE_SERVICES.typed(sample_service())
    render_preset({"spec": service["spec"]}, default_llm_service(service), Settings.of(Config(), SYSTEM_NAMESPACE))


def _prepare_certificates() -> None:
    """Loads also what issues certificates, which a laptop without such services is spared."""
    _prepare()
    issue_self_signed(("localhost",), datetime.now(UTC), timedelta(days=1))


PROGRAM: Final = Program(
    name=LLMISVC_MANAGER,
    lease="llminferenceservice-kserve-controller-manager",
    webhook_service="llmisvc-webhook-server-service",
    certificate="llmisvc-webhook-server-cert",
    event_source="LLMInferenceServiceController",
    webhooks=LLM_WEBHOOKS,
    controllers=controllers_of(LLMISVC_MANAGER),
    tasks=(migrate_stored_versions, remove_variant_autoscalings),
    defaults=Options(metrics=Address("", 8443), metrics_secure=True),
    prepare=_prepare,
)


log = logging.getLogger(__name__)
WITHIN_NAMESPACES: Final = (
    "presets, Gateways and the Services of these are read there and in the namespace of the manager alone",
    "GatewayClasses are not read: whether that of a Gateway exists is not checked",
    "LocalModelCaches are not read: models are downloaded by the storage initializer",
    "schedulers get no ClusterRoleBinding to system:auth-delegator: they refuse requests for their metrics",
    "the metrics of the manager are refused, too, unless --metrics-secure=false or its account is bound to that role",
    "stored versions are not migrated: that takes a change of the CRDs",
    "no caBundle is set: webhooks and conversion from v1alpha1 work only where an administrator registers them",
    "optional kinds that are installed later are found within two minutes",
)
"""What a manager of some namespaces does without, because it takes rights for the whole cluster."""


def warn_of_limits(options: Options) -> None:
    if options.namespaces:
        log.warning("acting on LLMInferenceServices in the namespaces %s alone", ", ".join(options.namespaces))
        for limit in WITHIN_NAMESPACES:
            log.warning("%s", limit)


@click.command(cls=flags.GoCommand, context_settings={"help_option_names": ["-h", "--help"]})
@flags.shared_flags(PROGRAM.defaults)
@click.option("--metrics-secure", default=True, help="Serve metrics over TLS, to whom may read them.", **flags.SWITCH)
@click.option(
    "--storage-migration-timeout",
    type=flags.duration,
    default="1h",
    show_default=True,
    help="How long to try to migrate stored objects to the newest version.",
)
@click.option(
    "--storage-migration-poll-interval",
    type=flags.duration,
    default="30s",
    show_default=True,
    help="How long to wait between attempts to migrate.",
)
def main(
    metrics_secure: bool, storage_migration_timeout: float, storage_migration_poll_interval: float, **given: Any
) -> None:
    """Run the LLMInferenceService controllers and their webhooks.

    The cluster is found through KUBECONFIG, ~/.kube/config, or the service account of the pod. POD_NAMESPACE names
    the namespace of the configuration, of the presets and of the lease (kserve).
    """
    logs.set_up(flags.log_level(given))
    llm = replace(
        llm_options(os.environ),
        migration_timeout=storage_migration_timeout,
        migration_poll_interval=storage_migration_poll_interval,
    )
    options = replace(flags.options_from(PROGRAM.defaults, given), metrics_secure=metrics_secure, llm=llm)
    warn_of_limits(options)
    flags.run_or_exit(PROGRAM.name, program.build_and_run({replace(PROGRAM, prepare=_prepare_certificates): options}))


def llm_options(environment: Mapping[str, str]) -> LLMOptions:
    """Returns what environment variables choose: how presets are called, whether they can go, whom to trust."""
    return LLMOptions(
        preset_prefix=environment.get("LLM_INFERENCE_SERVICE_CONFIG_PREFIX", PRESET_PREFIX),
        pin_presets=flags.go_bool(environment.get("LLM_INFERENCE_SERVICE_VERSIONED_CONFIG", "true")),
        wildcard_label=environment.get("GATEWAY_API_WILDCARD_HOSTNAME") or WILDCARD_LABEL,
        trusted_images=flags.names(environment.get("TRUSTED_SCHEDULER_IMAGES", "")),
        keep_presets=flags.go_bool(environment.get("PREVENT_WELL_KNOWN_CONFIG_DELETION", "true")),
    )
