"""The status of an LLMInferenceService."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from isvc.api.fields import ATOMIC, Int32, Required, Schema, Spec, rules, zero
from isvc.api.llm.names import Group, KindName, Namespace, ObjectName, ObjectReference, SectionName
from isvc.api.meta import Addressable


class ObservedGateway(ObjectReference):
    """A Gateway, and what reaches the service through it."""

    listeners: Annotated[list[SectionName], ATOMIC] = []
    """Listeners; all of them when there are none here."""
    http_routes: Annotated[list[ObjectReference], ATOMIC] = []
    """HTTPRoutes."""


class ObservedSchedulerStatus(Spec):
    """What the scheduler consists of."""

    inference_pool: ObjectReference | None = None
    """The InferencePool in use."""
    service: ObjectReference | None = None
    """The scheduler's Service."""


class CommonRouterStatus(Spec):
    """What both versions tell about the way in."""

    gateways: Annotated[list[ObservedGateway], ATOMIC] = []
    """Gateways that lead here."""
    scheduler: ObservedSchedulerStatus | None = None
    """What the scheduler consists of."""


class BackendObjectReference(Spec):
    """Where a route sends requests."""

    __schema__: ClassVar[dict[str, Any]] = rules(
        (
            "(size(self.group) == 0 && self.kind == 'Service') ? has(self.port) : true",
            "Must have port for Service reference",
        )
    ).attributes

    group: Annotated[Group, Schema(default="")] | None = None
    """API group of the object."""
    kind: Annotated[KindName, Schema(default="Service")] | None = None
    """Kind of the object."""
    name: Required[ObjectName] = zero(str)
    """Name of the object."""
    namespace: Namespace | None = None
    """Namespace of the object."""
    port: Annotated[Int32, Schema(minimum=1, maximum=65535)] | None = None
    """Port of the object."""


class GroupMemberStatus(Spec):
    """A service of the group."""

    name: Required[str] = zero(str)
    """Name of the service."""
    weight: Required[Int32] = zero(int)
    """Its share of traffic."""
    stopped: bool = False
    """Whether it is stopped and gets none."""
    backend_ref: BackendObjectReference | None = None
    """Where its share goes."""


class GroupStatus(Spec):
    """The group that shares traffic."""

    name: Required[str] = zero(str)
    """Name of the group."""
    members: Annotated[
        list[GroupMemberStatus], Schema(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
    ] = []
    """Services of the group."""


class RouterStatus(CommonRouterStatus):
    """The way in."""

    group: GroupStatus | None = None
    """The group that shares traffic."""


class TypedLocalObjectReference(Spec):
    """An object of some kind in the same namespace."""

    __schema__: ClassVar[dict[str, Any]] = {"x-kubernetes-map-type": "atomic"}

    api_group: str | None = None
    """API group of the object."""
    kind: Required[str] = zero(str)
    """Kind of the object."""
    name: Required[str] = zero(str)
    """Name of the object."""


class ObservedWorkloadStatus(TypedLocalObjectReference):
    """A workload, and how much of it is ready."""

    ready_replicas: Int32 | None = None
    """Replicas that take requests."""


class WorkloadStatus(Spec):
    """What runs."""

    primary: ObservedWorkloadStatus | None = None
    """The workload that answers; of two, the one that decodes."""
    prefill: ObservedWorkloadStatus | None = None
    """The workload that reads prompts, where that is apart."""
    service: TypedLocalObjectReference | None = None
    """The Service in front of the primary workload."""
    scheduler: ObservedWorkloadStatus | None = None
    """The scheduler."""


class AddressedModel(Spec):
    """A model that an address answers for."""

    name: Required[str] = zero(str)
    """Name of the model in requests."""


class SourcedAddress(Addressable):
    """Where the service answers, and through what."""

    origin: ObjectReference | None = None
    """What the address comes from."""
    models: list[AddressedModel] = []
    """Models that it answers for."""


class AppliedConfigRef(Spec):
    """A configuration that went into the service."""

    name: Required[ObjectName] = zero(str)
    """Name of the LLMInferenceServiceConfig."""
    namespace: Required[Namespace] = zero(str)
    """Namespace of the LLMInferenceServiceConfig."""
    source: Required[Annotated[str, Schema(enum=["Preset", "UserRef"])]] = zero(str)
    """Why it was applied: as a preset, or because the service names it."""
