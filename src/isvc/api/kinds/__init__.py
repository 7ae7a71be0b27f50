"""The table of our kinds: one row for each, with what can be said of a kind without its controller.

CRDs, managers, their roles, commands, diagnosis, rendering, the dashboard and the laptop follow from it. A row names
the folder of its controller, which `isvc.programs.controllers` imports when it is needed: this module costs no more
than the types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Final

from isvc.api import resources
from isvc.api.annotations import GRAPH_LABEL, NAME_LABEL, SERVICE_LABEL
from isvc.api.inferencegraph import InferenceGraph
from isvc.api.inferenceservice import InferenceService
from isvc.api.kinds import printer_columns as columns
from isvc.api.llm import v1alpha1, v1alpha2
from isvc.api.localmodel import LocalModelCache, LocalModelNamespaceCache, LocalModelNode, LocalModelNodeGroup
from isvc.api.meta import Kind
from isvc.api.servingruntime import ClusterServingRuntime, ServingRuntime
from isvc.api.storagecontainer import ClusterStorageContainer
from isvc.api.trainedmodel import TrainedModel
from isvc.kube.objects import Object
from isvc.kube.resource import Resource

ISVC_MANAGER: Final = "isvc-manager"
LLMISVC_MANAGER: Final = "llmisvc-manager"
LOCALMODEL_MANAGER: Final = "localmodel-manager"


@dataclass(frozen=True, slots=True, eq=False)
class KindRow:
    """A kind of ours.

    `api_type`            of the version that is stored
    `older`               types of the versions that are served beside it
    `columns`             what `kubectl get` shows
    `short_name`          what people call it; they ask for objects of a kind that has one: `isvc get`, `isvc explain`
    `is_short_name_ours`  whether only our commands know the short name: KServe's CRD has none
    `has_status`          whether there is a subresource for it
    `manager`             the program whose controller reconciles it; empty for a kind that others only read
    `controller`          the package of that controller, below `isvc.controllers`
    `pod_label`           whose value on a pod is the name of the object that the pod runs for
    `is_service`          whether it answers requests at an address of its own
    `keeps_history`       whether earlier specs are kept, so that `isvc undo` can bring one back
    """

    resource: Resource
    api_type: type[Kind]
    _: KW_ONLY
    older: Mapping[str, type[Kind]] = field(default_factory=dict)
    columns: tuple[Object, ...] = ()
    short_name: str = ""
    is_short_name_ours: bool = False
    has_status: bool = True
    manager: str = ""
    controller: str = ""
    pod_label: str = ""
    is_service: bool = False
    keeps_history: bool = False

    @property
    def versions(self) -> tuple[tuple[str, type[Kind]], ...]:
        """Each version with its type, the stored one last."""
        return *self.older.items(), (self.resource.version, self.api_type)


#: In the order in which they are listed, and in which documents are applied: later ones refer to earlier ones (and
#: services to caches, which come first then).
KINDS: Final = (
    KindRow(
        resources.INFERENCE_SERVICES,
        InferenceService,
        columns=columns.SERVICE,
        short_name="isvc",
        manager=ISVC_MANAGER,
        controller="inferenceservice",
        pod_label=SERVICE_LABEL,
        is_service=True,
        keeps_history=True,
    ),
    KindRow(
        resources.LLM_INFERENCE_SERVICES,
        v1alpha2.LLMInferenceService,
        older={"v1alpha1": v1alpha1.LLMInferenceService},
        columns=columns.LLM,
        short_name="llmisvc",
        manager=LLMISVC_MANAGER,
        controller="llmisvc",
        pod_label=NAME_LABEL,
        is_service=True,
        keeps_history=True,
    ),
    KindRow(
        resources.LLM_INFERENCE_SERVICE_CONFIGS,
        v1alpha2.LLMInferenceServiceConfig,
        older={"v1alpha1": v1alpha1.LLMInferenceServiceConfig},
        columns=columns.PRESET,
        manager=LLMISVC_MANAGER,
        controller="llmisvc.config",
    ),
    KindRow(
        resources.INFERENCE_GRAPHS,
        InferenceGraph,
        columns=columns.ADDRESSED,
        short_name="ig",
        manager=ISVC_MANAGER,
        controller="inferencegraph",
        pod_label=GRAPH_LABEL,
        is_service=True,
    ),
    KindRow(
        resources.TRAINED_MODELS,
        TrainedModel,
        columns=columns.ADDRESSED,
        short_name="tm",
        manager=ISVC_MANAGER,
        controller="trainedmodel",
    ),
    KindRow(resources.SERVING_RUNTIMES, ServingRuntime, columns=columns.RUNTIME, has_status=False),
    KindRow(resources.CLUSTER_SERVING_RUNTIMES, ClusterServingRuntime, columns=columns.RUNTIME, has_status=False),
    KindRow(resources.CLUSTER_STORAGE_CONTAINERS, ClusterStorageContainer, has_status=False),
    KindRow(
        resources.LOCAL_MODEL_CACHES,
        LocalModelCache,
        short_name="lmc",
        is_short_name_ours=True,
        manager=LOCALMODEL_MANAGER,
        controller="localmodel",
    ),
    KindRow(
        resources.LOCAL_MODEL_NAMESPACE_CACHES,
        LocalModelNamespaceCache,
        short_name="lmnc",
        is_short_name_ours=True,
        manager=LOCALMODEL_MANAGER,
        controller="localmodel.namespace",
    ),
    KindRow(resources.LOCAL_MODEL_NODE_GROUPS, LocalModelNodeGroup, has_status=False),
    KindRow(resources.LOCAL_MODEL_NODES, LocalModelNode, manager=LOCALMODEL_MANAGER, controller="localmodel.lists"),
)
#: The kinds that people ask for by name, and those among them that answer requests.
NAMED: Final = tuple(row for row in KINDS if row.short_name)
SERVICES: Final = tuple(row for row in NAMED if row.is_service)
_BY_KIND: Final = {row.resource.kind: row for row in KINDS}


def row_of(obj: Object) -> KindRow | None:
    """Returns the row of the object's kind, if that is one of ours."""
    return _BY_KIND.get(str(obj.get("kind")))
