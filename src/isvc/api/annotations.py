"""Annotations and labels with which people steer a service, each with the question it answers."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from isvc.api.resources import GROUP
from isvc.kube.objects import Object, annotations_of

INTERNAL = f"internal.{GROUP}"
"""Prefix of annotations with which the controller speaks to the pod webhook."""

STOP = f"{GROUP}/stop"
AUTOSCALER_CLASS = f"{GROUP}/autoscalerClass"
DISABLE_LOCAL_MODEL = f"{GROUP}/disable-localmodel"
DISABLE_AUTO_UPDATE = f"{GROUP}/disable-auto-update"
DISRUPTION_BUDGET = "isvc.dev/disruption-budget"
HTTP_METRIC = "isvc.dev/http-metric"
WAKE_ON_REQUEST = "isvc.dev/wake-on-request"
NODE_GROUP = f"{GROUP}/nodegroup"
GPU_RESOURCE_TYPES = f"{GROUP}/gpu-resource-types"
DEVICE_CLASS = f"{GROUP}/exp-dra-device-class"
DEVICE_COUNT = f"{GROUP}/exp-dra-device-count"
DEVICE_SELECTOR = f"{GROUP}/exp-dra-cel-selector"
DEVICE_CONTAINER = f"{GROUP}/exp-dra-container-name"
FINALIZER = "inferenceservice.finalizers"
"""Holds a deleted InferenceService until its controller has cleaned up."""
LLM_FINALIZER = f"{GROUP}/llmisvc-finalizer"
"""Holds a deleted LLMInferenceService until its controller has cleaned up."""

SERVICE_LABEL = f"{GROUP}/inferenceservice"
GRAPH_LABEL = f"{GROUP}/inferencegraph"
NAME_LABEL = "app.kubernetes.io/name"
"""Labels of pods: which InferenceService, InferenceGraph or LLMInferenceService they run for."""

LOCAL_MODEL = f"{INTERNAL}/localmodel"
LOCAL_MODEL_NAMESPACE = f"{INTERNAL}/localmodel-namespace"
LOCAL_MODEL_SOURCE_URI = f"{INTERNAL}/localmodel-sourceuri"
LOCAL_MODEL_PVC_NAME = f"{INTERNAL}/localmodel-pvc-name"


class AutoscalerClass(StrEnum):
    HPA = "hpa"
    KEDA = "keda"
    EXTERNAL = "external"
    NONE = "none"


def is_stopped(obj: Object) -> bool:
    """Returns whether people asked for the service to be stopped: `serving.kserve.io/stop: "true"`, in any case."""
    return asks_to_stop(annotations_of(obj))


def asks_to_stop(annotations: Mapping[str, str]) -> bool:
    return annotations.get(STOP, "").lower() == "true"


def wants_local_model(obj: Object) -> bool:
    """Returns whether the service may use a model cached on its node. Any value of the annotation says no."""
    return DISABLE_LOCAL_MODEL not in annotations_of(obj)
