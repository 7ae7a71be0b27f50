"""Our kinds, typed; their defaults, validation, conversion and CRDs. All of it pure.

from isvc.api import InferenceService
service = InferenceService.decode(obj)
service.spec.predictor.model.storage_uri
"""

from isvc.api.codec import DecodeError
from isvc.api.inferencegraph import InferenceGraph
from isvc.api.inferenceservice import InferenceService
from isvc.api.llm.v1alpha2 import LLMInferenceService, LLMInferenceServiceConfig
from isvc.api.localmodel import LocalModelCache, LocalModelNamespaceCache, LocalModelNode, LocalModelNodeGroup
from isvc.api.servingruntime import ClusterServingRuntime, ServingRuntime
from isvc.api.storagecontainer import ClusterStorageContainer
from isvc.api.trainedmodel import TrainedModel

__all__ = [
    "ClusterServingRuntime",
    "ClusterStorageContainer",
    "DecodeError",
    "InferenceGraph",
    "InferenceService",
    "LLMInferenceService",
    "LLMInferenceServiceConfig",
    "LocalModelCache",
    "LocalModelNamespaceCache",
    "LocalModelNode",
    "LocalModelNodeGroup",
    "ServingRuntime",
    "TrainedModel",
]
