"""Models kept on the disks of nodes: caches, the groups of nodes that hold them, and each node's own list."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import Definition, Int, Quantity, Required, Schema, Spec, rules, zero
from isvc.api.meta import Kind
from isvc.kube.objects import Object

_NODE_STATES = ["", "NodeNotReady", "NodeDownloadPending", "NodeDownloading", "NodeDownloaded", "NodeDownloadError"]
_MODEL_STATES = ["", "ModelDownloadPending", "ModelDownloading", "ModelDownloaded", "ModelDownloadError"]


def covers_uri(source: str, uri: str) -> bool:
    """Returns whether a cache of `source` also holds `uri`: the same place, or one below it."""
    return f"{uri.rstrip('/')}/".startswith(f"{source.rstrip('/')}/")


class LocalModelStorageSpec(Spec):
    """The credential to download with."""

    parameters: dict[str, str] | None = None
    """Settings laid over those of the credential."""
    key: str | None = None
    """Which entry of the storage secret to use."""


class LocalModelCacheSpec(Spec):
    """Which model to keep on which nodes."""

    source_model_uri: Required[Annotated[str, rules(("self == oldSelf", "StorageUri is immutable"))]] = zero(str)
    """Where the model comes from. Cannot change."""
    model_size: Required[Quantity] = zero(str)
    """Disk space that the model takes."""
    node_groups: Required[Annotated[list[str], Schema(minItems=1)]] = zero(list)
    """Groups of nodes that keep the model."""
    service_account_name: str = ""
    """The service account whose credentials download the model."""
    storage: LocalModelStorageSpec | None = None
    """The credential to download with."""


class NamespacedName(Spec):
    """An object of some namespace."""

    name: str = ""
    """Name of the object."""
    namespace: str = ""
    """Namespace of the object."""


class LocalModelCopies(Spec):
    """How many nodes have the model."""

    available: Int = 0
    """Nodes that have it."""
    total: Int = 0
    """Nodes that should have it."""
    failed: Int = 0
    """Nodes that failed to download it."""


class LocalModelCacheStatus(Spec):
    """Where the model is, and who uses it."""

    node_status: dict[str, Annotated[str, Schema(enum=_NODE_STATES)]] = {}
    """How far each node is."""
    copies: LocalModelCopies | None = None
    """How many nodes have the model."""
    inference_services: list[NamespacedName] = []
    """InferenceServices that use it."""
    llm_inference_services: list[NamespacedName] = []
    """LLMInferenceServices that use it."""


class LocalModelCache(Kind):
    """A model kept on the disks of nodes, for every namespace."""

    spec: LocalModelCacheSpec = LocalModelCacheSpec()
    """Which model, on which nodes."""
    status: LocalModelCacheStatus = LocalModelCacheStatus()
    """Where it is."""


class LocalModelNamespaceCache(Kind):
    """A model kept on the disks of nodes, for one namespace."""

    spec: LocalModelCacheSpec = LocalModelCacheSpec()
    """Which model, on which nodes."""
    status: LocalModelCacheStatus = LocalModelCacheStatus()
    """Where it is."""


class LocalModelNodeGroupSpec(Spec):
    """Disks of a group of nodes."""

    storage_limit: Required[Quantity] = zero(str)
    """Disk space per node that models may take together."""
    persistent_volume_spec: Required[Annotated[Object, Definition("io.k8s.api.core.v1.PersistentVolumeSpec")]] = zero(
        dict
    )
    """The volume that models are kept on."""
    persistent_volume_claim_spec: Required[
        Annotated[Object, Definition("io.k8s.api.core.v1.PersistentVolumeClaimSpec")]
    ] = zero(dict)
    """The claim on that volume."""


class LocalModelNodeGroupStatus(Spec):
    """How full the disks are."""

    used: Quantity | None = None
    """Space that models take."""
    available: Quantity | None = None
    """Space that is left."""


class LocalModelNodeGroup(Kind):
    """Nodes whose disks keep models."""

    spec: LocalModelNodeGroupSpec = LocalModelNodeGroupSpec()
    """Their disks."""
    status: LocalModelNodeGroupStatus = LocalModelNodeGroupStatus()
    """How full they are."""


class LocalModelInfo(Spec):
    """A model that a node should have."""

    source_model_uri: Required[str] = zero(str)
    """Where the model comes from."""
    model_name: Required[str] = zero(str)
    """Name of the cache, and of the folder on the node."""
    namespace: str = ""
    """Namespace of the cache; empty for a LocalModelCache."""
    node_group: str = ""
    """Group through which the node has the model."""
    service_account_name: str = ""
    """The service account whose credentials download the model."""
    storage: LocalModelStorageSpec | None = None
    """The credential to download with."""


class LocalModelNodeSpec(Spec):
    """What a node should have."""

    local_models: Required[list[LocalModelInfo]] = zero(list)
    """Models that the node should have."""


class LocalModelNodeStatus(Spec):
    """What a node has."""

    model_status: dict[str, Annotated[str, Schema(enum=_MODEL_STATES)]] = {}
    """How far each model is."""


class LocalModelNode(Kind):
    """A node's own list of models."""

    spec: LocalModelNodeSpec = LocalModelNodeSpec()
    """What it should have."""
    status: LocalModelNodeStatus = LocalModelNodeStatus()
    """What it has."""
