"""Everything that a decision about one LLMInferenceService is based on, frozen into one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from isvc.api.annotations import is_stopped
from isvc.api.codec import decode
from isvc.api.llm.names import GatewayObjectReference
from isvc.api.llm.router import GatewayRoutesSpec
from isvc.api.llm.v1alpha2 import LLMInferenceServiceSpec, SchedulerSpec
from isvc.engine import kind as engine
from isvc.kube.conditions import TRUE
from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.serving.credentials import Lookup
from isvc.serving.environment import WILDCARD_LABEL, Environment
from isvc.serving.llm.presets import Settings


@dataclass(frozen=True, slots=True)
class AppliedConfig:
    """A configuration that went into a service: a preset, or one that the service refers to."""

    name: str
    namespace: str
    source: str  # Preset or UserRef

    def report(self) -> Object:
        """Returns what the status says of it."""
        return {"name": self.name, "namespace": self.namespace, "source": self.source}


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Merged:
    """Presets, base references and the service's own spec, merged and rendered: what is planned from.

    `raw` is the spec as it would be stored, and `spec` the same, typed. `lacking` are presets that there are not, and
    that it can do without.
    """

    raw: Object
    spec: LLMInferenceServiceSpec
    applied: tuple[AppliedConfig, ...] = ()
    scheduler_config_map: Key | None = None
    lacking: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        raw: Object,
        applied: tuple[AppliedConfig, ...] = (),
        config_map: Key | None = None,
        lacking: frozenset[str] = frozenset(),
    ) -> Merged:
        """Raises `DecodeError`."""
        return cls(raw, decode(LLMInferenceServiceSpec, raw), applied, config_map, lacking)


@dataclass(frozen=True, slots=True)
class Combination:
    """How combining the configurations went, in the words of the condition PresetsCombined.

    `applied` are those that were; None leaves what was said before. A service `is_planned` where they could be
    combined, or where they do not matter because it is stopped.
    """

    status: str = TRUE
    reason: str = ""
    message: str = ""
    applied: tuple[AppliedConfig, ...] | None = ()
    is_planned: bool = True


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
class Observed(engine.Observed):
    """`accounts` finds service accounts of the namespace by name. `pins` are the names that presets keep.

    `server_version` is (major, minor), known only where it matters. `is_reread` is set where something was read that no
    watch reports edits of. `away` are those of KEDA that do not run.
    """

    merged: Merged
    config: Config
    settings: Settings
    combination: Combination = field(default_factory=Combination)
    pins: Mapping[str, str] = field(default_factory=dict)
    live: Mapping[tuple[Resource, str], Object] = field(default_factory=dict)
    binding_name: str = ""  # the name for one
    bindings: Sequence[Object] = ()  # ClusterRoleBindings of the service, which it cannot own
    network: Network = field(default_factory=Network)
    pods: Sequence[Object] = ()
    served: frozenset[Resource] = frozenset()
    ca_bundle: Object | None = None
    accounts: Callable[[str], Object | None] = lambda name: None
    environment: Environment = field(default_factory=Environment)
    server_version: tuple[str, str] | None = None
    is_reread: bool = False
    away: frozenset[str] = frozenset()

    @property
    def spec(self) -> LLMInferenceServiceSpec:
        """The merged spec."""
        return self.merged.spec

    @cached_property
    def scheduler(self) -> SchedulerSpec | None:
        return self.spec.router.scheduler if self.spec.router else None

    @cached_property
    def route(self) -> GatewayRoutesSpec | None:
        return self.spec.router.route if self.spec.router else None

    @property
    def gateways(self) -> Sequence[GatewayObjectReference]:
        """The gateways that the service refers to."""
        gateway = self.spec.router.gateway if self.spec.router else None
        return gateway.refs if gateway else ()

    @property
    def users_pool(self) -> str:
        """The name of an inference pool of the user's own; empty where the pool is ours."""
        return self.scheduler.users_pool if self.scheduler else ""

    @property
    def system_namespace(self) -> str:
        return self.environment.system_namespace

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(self.namespace, self.answers, self.accounts)

    @cached_property
    def stopped(self) -> bool:
        return is_stopped(self.raw)
