"""What can be chosen when a manager is started, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from isvc.serving.environment import (
    KNATIVE_NAMESPACE,
    PRESET_PREFIX,
    SYSTEM_NAMESPACE,
    WILDCARD_LABEL,
    Environment,
    ModelNode,
)
from isvc.toolkit.address import Address
from isvc.toolkit.tracing import Collector

METRICS: Final = Address("", 8080)
HEALTH_PROBES: Final = Address("", 8081)
WEBHOOKS: Final = Address("", 9443)


@dataclass(frozen=True, slots=True)
class TLS:
    """The oldest version to accept and the cipher suites, by their Go names; empty for the defaults."""

    min_version: str = ""
    cipher_suites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LLMOptions:
    """Options of llmisvc-manager alone."""

    preset_prefix: str = PRESET_PREFIX
    pin_presets: bool = True
    wildcard_label: str = WILDCARD_LABEL
    trusted_images: tuple[str, ...] = ()
    keep_presets: bool = True
    migration_timeout: float = 3600.0
    migration_poll_interval: float = 30.0


@dataclass(frozen=True, slots=True)
class Options:
    metrics: Address | None = METRICS
    metrics_secure: bool = False
    health_probes: Address | None = HEALTH_PROBES
    webhooks: Address = WEBHOOKS
    webhook_cert_dir: Path | None = None
    webhook_client_ca: Path | None = None  # of the certificate that API servers show; they need none without it
    webhook_client_names: tuple[str, ...] = ()  # in that certificate; any without these
    tls: TLS = TLS()
    kubeconfig: str | None = None
    leader_elect: bool = False
    shutdown_delay: float = 0.0  # seconds to answer after the end has begun
    system_namespace: str = SYSTEM_NAMESPACE
    knative_namespace: str = KNATIVE_NAMESPACE
    namespaces: tuple[str, ...] = ()  # where to act; everywhere without any
    revision_history_limit: int = 10  # earlier specs kept of each service; 0 for none
    traces: Collector | None = None
    llm: LLMOptions = field(default_factory=LLMOptions)
    node: ModelNode = field(default_factory=ModelNode)

    @property
    def environment(self) -> Environment:
        """Returns what controllers have to know of the options."""
        return Environment(
            system_namespace=self.system_namespace,
            knative_namespace=self.knative_namespace,
            cluster_wide=not self.namespaces,
            revision_limit=self.revision_history_limit,
            preset_prefix=self.llm.preset_prefix,
            pin_presets=self.llm.pin_presets,
            wildcard_label=self.llm.wildcard_label,
            trusted_images=self.llm.trusted_images,
            node=self.node,
        )


def knative_namespace(environment: Mapping[str, str]) -> str:
    """Returns where Knative keeps its settings. The variable is KServe's."""
    return environment.get("KNATIVE_CONFIG_AUTOSCALER_NAMESPACE") or KNATIVE_NAMESPACE


def system_namespace(environment: Mapping[str, str]) -> str:
    """Returns the namespace of the configuration, the lease and the certificates: the pod's own."""
    return environment.get("POD_NAMESPACE") or SYSTEM_NAMESPACE
