"""Admission of ServingRuntimes and ClusterServingRuntimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from isvc.api import ClusterServingRuntime, ServingRuntime
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, SERVING_RUNTIMES
from isvc.api.validation import Verdict
from isvc.api.validation.servingruntime import Runtime, validate_runtime
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.toolkit.cache import Reader
from isvc.toolkit.webhook import AdmissionRequest
from isvc.webhooks.answers import Handler, validator

_TYPES: Final[Mapping[Resource, type[Runtime]]] = {
    SERVING_RUNTIMES: ServingRuntime,
    CLUSTER_SERVING_RUNTIMES: ClusterServingRuntime,
}


def runtime_validator(resource: Resource, reader: Reader, configuration: Callable[[], Config]) -> Handler:
    """A runtime is compared with the others of its namespace, or of the cluster."""

    def judge(request: AdmissionRequest) -> Verdict:
        others = reader.list(resource, request.namespace)
        gpus = configuration().multi_node.gpu_resource_types
        return validate_runtime(request.object, others, request.old_object or None, _TYPES[resource], gpus)

    return validator(judge)
