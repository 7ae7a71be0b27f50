"""How our kinds are addressed."""

from __future__ import annotations

from isvc.kube.resource import Resource

GROUP = "serving.kserve.io"

INFERENCE_SERVICES = Resource(GROUP, "v1beta1", "inferenceservices", "InferenceService")
SERVING_RUNTIMES = Resource(GROUP, "v1alpha1", "servingruntimes", "ServingRuntime")
CLUSTER_SERVING_RUNTIMES = Resource(GROUP, "v1alpha1", "clusterservingruntimes", "ClusterServingRuntime", False)
CLUSTER_STORAGE_CONTAINERS = Resource(GROUP, "v1alpha1", "clusterstoragecontainers", "ClusterStorageContainer", False)
INFERENCE_GRAPHS = Resource(GROUP, "v1alpha1", "inferencegraphs", "InferenceGraph")
TRAINED_MODELS = Resource(GROUP, "v1alpha1", "trainedmodels", "TrainedModel")
LOCAL_MODEL_CACHES = Resource(GROUP, "v1alpha1", "localmodelcaches", "LocalModelCache", False)
LOCAL_MODEL_NAMESPACE_CACHES = Resource(GROUP, "v1alpha1", "localmodelnamespacecaches", "LocalModelNamespaceCache")
MODEL_CACHES = (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES)
LOCAL_MODEL_NODE_GROUPS = Resource(GROUP, "v1alpha1", "localmodelnodegroups", "LocalModelNodeGroup", False)
LOCAL_MODEL_NODES = Resource(GROUP, "v1alpha1", "localmodelnodes", "LocalModelNode", False)
LLM_INFERENCE_SERVICES = Resource(GROUP, "v1alpha2", "llminferenceservices", "LLMInferenceService")
LLM_INFERENCE_SERVICE_CONFIGS = Resource(GROUP, "v1alpha2", "llminferenceserviceconfigs", "LLMInferenceServiceConfig")
LLM_INFERENCE_SERVICES_V1ALPHA1 = LLM_INFERENCE_SERVICES._replace(version="v1alpha1")
LLM_INFERENCE_SERVICE_CONFIGS_V1ALPHA1 = LLM_INFERENCE_SERVICE_CONFIGS._replace(version="v1alpha1")
