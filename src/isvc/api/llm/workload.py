"""A workload of an LLMInferenceService: its pods, how many, how they share the model."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from isvc.api.fields import Definition, Int32, IntOrString, Quantity, Required, Schema, Spec, rules, zero
from isvc.api.llm.scaling import ScalingSpec
from isvc.kube.objects import Object

OpenPodSpec = Annotated[Object, Definition("io.k8s.api.core.v1.PodSpec", required=())]
"""A pod of which presets supply the rest: not even containers are asked for."""

_Size = Annotated[Int32, Schema(minimum=1)]


class ParallelismSpec(Spec):
    """How the model is spread over GPUs and nodes."""

    tensor: _Size | None = None
    """Over how many GPUs each layer is spread."""
    pipeline: _Size | None = None
    """Over how many nodes the layers are spread."""
    data: _Size | None = None
    """How many copies of the model there are."""
    data_local: _Size | None = None
    """How many of the copies run on each node."""
    data_rpc_port: Annotated[Int32, Schema(minimum=1, maximum=65535)] | None = msgspec.field(
        default=None, name="dataRPCPort"
    )
    """Port on which the copies speak with each other."""
    expert: bool = False
    """Whether experts are spread too."""

    @property
    def is_pipeline(self) -> bool:
        return (self.pipeline or 0) > 0

    @property
    def is_data(self) -> bool:
        return (self.data or 0) > 0 or (self.data_local or 0) > 0

    @property
    def size(self) -> int | None:
        """Returns how many nodes one replica takes, or None when that is not said."""
        if self.is_data:
            return max(max(self.data or 1, 1) // max(self.data_local or 1, 1), 1)
        return self.pipeline if self.is_pipeline else None


class RolloutStrategy(Spec):
    """How new pods replace old ones."""

    max_unavailable: IntOrString | None = None
    """How many replicas may be missing meanwhile, as a number or a percentage."""
    max_surge: IntOrString | None = None
    """How many replicas may be added meanwhile, as a number or a percentage."""


class EmptyDirTierSpec(Spec):
    """Disk space of the node."""

    size: Required[Quantity] = zero(str)
    """How much of it."""


class PVCRefTierSpec(Spec):
    """A volume that exists."""

    name: Required[str] = zero(str)
    """Name of the claim."""
    path: str = ""
    """Folder on the volume."""


class PVCTierSpec(Spec):
    """A volume: one per pod, or one that exists."""

    spec: Annotated[Object, Definition("io.k8s.api.core.v1.PersistentVolumeClaimSpec")] | None = None
    """A claim made for each pod, and gone with it."""
    ref: PVCRefTierSpec | None = None
    """A claim that exists."""


class FileSystemTierSpec(Spec):
    """A cache tier on disk: exactly one of these."""

    empty_dir: EmptyDirTierSpec | None = None
    """Disk space of the node."""
    pvc: PVCTierSpec | None = None
    """A volume."""


class SecondaryTierSpec(Spec):
    """A cache tier after the first."""

    file_system: FileSystemTierSpec | None = None
    """On disk."""


class KVCacheOffloadingSpec(Spec):
    """Where the key-value cache goes when GPU memory is full."""

    cpu: Required[Quantity] = zero(str)
    """How much main memory to use."""
    eviction_policy: Annotated[str, Schema(default="lru", enum=["lru", "arc"])] = ""
    """What is forgotten first."""
    secondary: list[SecondaryTierSpec] = []
    """Further tiers, in this order."""


class CommonWorkloadSpec(Spec):
    """What both versions say about a workload."""

    __schema__: ClassVar[dict[str, Any]] = rules(
        (
            "!(has(self.replicas) && has(self.scaling))",
            "replicas and scaling are mutually exclusive; use scaling for autoscaled deployments"
            " or replicas for static deployments",
        )
    ).attributes

    replicas: Annotated[Int32, Schema(minimum=0)] | None = None
    """How many replicas, when they do not scale."""
    scaling: ScalingSpec | None = None
    """How replicas scale."""
    parallelism: ParallelismSpec | None = None
    """How the model is spread over GPUs and nodes."""
    labels: dict[str, str] = {}
    """Labels for the pods."""
    annotations: dict[str, str] = {}
    """Annotations for the pods."""
    template: OpenPodSpec | None = None
    """The pod; the head of several when there are workers. Presets supply what is left out."""
    worker: OpenPodSpec | None = None
    """The workers' pod. Set to spread a replica over several nodes."""
    rollout_strategy: RolloutStrategy | None = None
    """How new pods replace old ones."""


class WorkloadSpec(CommonWorkloadSpec):
    """A workload of v1alpha2."""

    kv_cache_offloading: KVCacheOffloadingSpec | None = None
    """Where the key-value cache goes when GPU memory is full."""


class StorageInitializerSpec(Spec):
    """The container that downloads the model."""

    enabled: bool | None = None
    """Set to false to go without it."""


class TracingSpec(Spec):
    """Traces of requests. An empty object switches them on."""

    exporter_endpoint: str | None = None
    """Where traces go."""
    sampler: str | None = None
    """Which requests are traced."""
    sampler_arg: str | None = None
    """Argument of the sampler, such as a ratio."""
    exporter: str | None = None
    """Protocol in which traces go out."""
