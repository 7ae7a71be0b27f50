"""Everything that a decision about one LLMInferenceService is based on, frozen into one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from isvc.api.annotations import is_stopped
from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.serving.credentials import Lookup
from isvc.serving.llm.presets import Settings


@dataclass(frozen=True, slots=True)
class AppliedConfig:
    """A configuration that went into a service: a preset, or one that the service refers to."""

    name: str
    namespace: str
    source: str  # Preset or UserRef, as status.appliedConfigs says it


@dataclass(frozen=True, slots=True)
class Merged:
    """Presets, base references and the service's own spec, merged and rendered.

    `spec` is what is planned from. `typed` is the same, for those who prefer attributes; parts that the types leave
    open (pods, routes, pools) are plain objects there too.
    """

    spec: Object
    typed: LLMInferenceServiceSpec
    applied: tuple[AppliedConfig, ...] = ()
    scheduler_config_map: Key | None = None


@dataclass(frozen=True, slots=True)
class Certificate:
    """A key and its certificate, as PEM."""

    key: bytes
    certificate: bytes


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """What a certificate has to be good for."""

    organization: str
    hosts: tuple[str, ...]
    addresses: tuple[str, ...]
    seconds: float


class CertificateNeeded(Exception):
    """Planning cannot go on without a certificate like this: the caller makes one and plans again."""

    def __init__(self, request: CertificateRequest) -> None:
        super().__init__(f"a certificate for {', '.join(request.hosts)}")
        self.request = request


@dataclass(frozen=True)
class Network:
    """What lies around the service: gateways, routes and pools that are not its own, and its peers in a group."""

    gateways: Mapping[Key, Object] = field(default_factory=dict)
    gateway_classes: Mapping[str, Object] = field(default_factory=dict)
    gateway_services: Mapping[Key, Object] = field(default_factory=dict)  # by the gateway's key
    routes: Mapping[str, Object] = field(default_factory=dict)  # HTTPRoutes that the service refers to
    pools: Mapping[tuple[Resource, str], Object] = field(default_factory=dict)  # InferencePools, of both groups
    members: Sequence[Object] = ()  # services of the same routing group, this one too
    namesakes: Sequence[Object] = ()  # other services of the namespace that may serve a model of the same name


@dataclass(frozen=True)
class Observed:
    raw: Object
    merged: Merged
    config: Config
    settings: Settings
    live: Mapping[tuple[Resource, str], Object] = field(default_factory=dict)
    network: Network = field(default_factory=Network)
    pods: Sequence[Object] = ()
    storage_containers: Sequence[Object] = ()
    served: frozenset[Resource] = frozenset()
    ca_bundle: Object | None = None
    lookup: Lookup = field(default_factory=lambda: Lookup(""))
    certificate: Certificate | None = None
    system_namespace: str = "kserve"
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
