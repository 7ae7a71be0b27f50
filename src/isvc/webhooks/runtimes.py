"""Admission of ServingRuntimes and ClusterServingRuntimes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isvc.api import ClusterServingRuntime, ServingRuntime
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, SERVING_RUNTIMES
from isvc.api.validation import Verdict
from isvc.api.validation.servingruntime import validate_runtime
from isvc.serving.config import Config
from isvc.toolkit.cache import Reader
from isvc.toolkit.reads import Read
from isvc.toolkit.webhook import AdmissionRequest
from isvc.webhooks.answers import Handler, validator

READS: Final = (Read(SERVING_RUNTIMES),)
CLUSTER_READS: Final = (Read(CLUSTER_SERVING_RUNTIMES, optional=True),)


def runtime_validator(reader: Reader, configuration: Callable[[], Config]) -> Handler:
    """A runtime is compared with the others of its namespace."""

    def judge(request: AdmissionRequest) -> Verdict:
        others = reader.list(SERVING_RUNTIMES, request.namespace)
        gpus = configuration().multi_node.gpu_resource_types
        return validate_runtime(request.object, others, request.old_object or None, ServingRuntime, gpus)

    return validator(judge)


def cluster_runtime_validator(reader: Reader, configuration: Callable[[], Config]) -> Handler:
    def judge(request: AdmissionRequest) -> Verdict:
        others = reader.list(CLUSTER_SERVING_RUNTIMES)
        gpus = configuration().multi_node.gpu_resource_types
        return validate_runtime(request.object, others, request.old_object or None, ClusterServingRuntime, gpus)

    return validator(judge)
