"""Everything that a decision about one LLMInferenceService is based on, frozen into one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property

from isvc.api.annotations import is_stopped
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.serving.credentials import Lookup
from isvc.serving.environment import SYSTEM_NAMESPACE, WILDCARD_LABEL
from isvc.serving.llm.presets import Settings


@dataclass(frozen=True, slots=True)
class AppliedConfig:
    """A configuration that went into a service: a preset, or one that the service refers to."""

    name: str
    namespace: str
    source: str  # Preset or UserRef, as status.appliedConfigs says it


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Merged:
    """Presets, base references and the service's own spec, merged and rendered: what is planned from."""

    spec: Object
    applied: tuple[AppliedConfig, ...] = ()
    scheduler_config_map: Key | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Certificate:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


class CertificateNeeded(Exception):
    """Planning cannot go on without a certificate for these hosts: the caller makes one and plans again."""

    def __init__(self, hosts: tuple[str, ...], life: timedelta) -> None:
        super().__init__(f"a certificate for {', '.join(hosts)}")
        self.hosts, self.life = hosts, life


@dataclass(frozen=True)
class Network:
    """What lies around the service: gateways, routes and pools that are not its own, and its peers in a group."""

    gateways: Mapping[Key, Object] = field(default_factory=dict)
    gateway_classes: Mapping[str, Object] = field(default_factory=dict)
    gateway_services: Mapping[Key, Object] = field(default_factory=dict)  # by the gateway's key
    routes: Mapping[str, Object] = field(default_factory=dict)  # HTTPRoutes that the service refers to
    pools: Mapping[tuple[Resource, str], Object] = field(default_factory=dict)  # InferencePools, of both groups
    members: Sequence[Object] = ()  # services of the same routing group, this one too
    namesakes: Sequence[Object] = ()  # other services of the namespace that are routed for a model of the same name
    references: frozenset[tuple[Resource, Key]] = frozenset()  # all that was looked for, there or not
    wildcard_label: str = WILDCARD_LABEL  # stands for `*` where a listener takes any host of a domain


@dataclass(frozen=True)
class Observed:
    raw: Object
    merged: Merged
    config: Config
    settings: Settings
    live: Mapping[tuple[Resource, str], Object] = field(default_factory=dict)
    network: Network = field(default_factory=Network)
    pods: Sequence[Object] = ()
    served: frozenset[Resource] = frozenset()
    ca_bundle: Object | None = None
    lookup: Lookup = field(default_factory=lambda: Lookup(""))
    certificate: Certificate | None = None  # made when planning asked for one
    system_namespace: str = SYSTEM_NAMESPACE
    cluster_wide: bool = True  # whether kinds that belong to no namespace may be read and written
    kubernetes: tuple[str, str] | None = None  # its version, where that matters
    now: str = ""

    @property
    def name(self) -> str:
        return name_of(self.raw)

    @property
    def namespace(self) -> str:
        return namespace_of(self.raw)

    @property
    def generation(self) -> int:
        return int(dig(self.raw, "metadata", "generation") or 0)

    @property
    def spec(self) -> Object:
        """The merged spec."""
        return self.merged.spec

    @cached_property
    def status(self) -> Object:
        status: Object = self.raw.get("status") or {}
        return status

    @cached_property
    def stopped(self) -> bool:
        return is_stopped(self.raw)
