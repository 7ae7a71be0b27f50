"""Models kept on the disks of nodes: caches, the groups of nodes that hold them, and each node's own list."""

from __future__ import annotations

from typing import Annotated, Final

from isvc.api.fields import Definition, Int, Quantity, Required, Schema, Spec, rules, zero
from isvc.api.meta import Kind
from isvc.kube.objects import Object

DOWNLOAD: Final = "-download"

# How far a model is on a node, in KServe's words: those of the node's list, and those of the cache.
PENDING: Final = "ModelDownloadPending"
DOWNLOADING: Final = "ModelDownloading"
DOWNLOADED: Final = "ModelDownloaded"
FAILED: Final = "ModelDownloadError"
MODEL_STATES: Final = (PENDING, DOWNLOADING, DOWNLOADED, FAILED)
NODE_NOT_READY: Final = "NodeNotReady"
NODE_PENDING: Final = "NodeDownloadPending"
NODE_DOWNLOADED: Final = "NodeDownloaded"
NODE_FAILED: Final = "NodeDownloadError"
NODE_STATES: Final = (NODE_NOT_READY, NODE_PENDING, "NodeDownloading", NODE_DOWNLOADED, NODE_FAILED)
NODE_STATE_OF: Final = dict(zip(MODEL_STATES, NODE_STATES[1:], strict=True))
"""What a cache says of a node, by what the node's list says of the model."""


def covers_uri(source: str, uri: str) -> bool:
    """Returns whether a cache of `source` also holds `uri`: the same place, or one below it."""
    return f"{uri.rstrip('/')}/".startswith(f"{source.rstrip('/')}/")


def status_key(name: str, namespace: str = "") -> str:
    """Returns the key of a cache's model in the status of LocalModelNodes."""
    return f"{namespace}/{name}" if namespace else name


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

    node_status: dict[str, Annotated[str, Schema(enum=["", *NODE_STATES])]] = {}
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

    @property
    def status_key(self) -> str:
        """The model's key in the status of its node."""
        return status_key(self.model_name, self.namespace)


class LocalModelNodeSpec(Spec):
    """What a node should have."""

    local_models: Required[list[LocalModelInfo]] = zero(list)
    """Models that the node should have."""


class LocalModelNodeStatus(Spec):
    """What a node has."""

    model_status: dict[str, Annotated[str, Schema(enum=["", *MODEL_STATES])]] = {}
    """How far each model is."""


class LocalModelNode(Kind):
    """A node's own list of models."""

    spec: LocalModelNodeSpec = LocalModelNodeSpec()
    """What it should have."""
    status: LocalModelNodeStatus = LocalModelNodeStatus()
    """What it has."""


def claim_name(cache: str, group: str) -> str:
    """Returns what pods call the model of a cache on the nodes of a group."""
    return f"{cache}-{group}"


def download_claim(cache: str, namespace: str, group: str) -> str:
    """Returns the claim that Jobs download through; caches of namespaces share the namespace of the Jobs."""
    return f"{claim_name(cache, group)}-{namespace}{DOWNLOAD}" if namespace else claim_name(cache, group)
