"""Where the webhooks are: the paths that KServe's webhook configurations name."""

from __future__ import annotations

from collections.abc import Callable

from isvc.api import ClusterServingRuntime, ServingRuntime
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    SERVING_RUNTIMES,
)
from isvc.api.validation import Verdict
from isvc.api.validation.inferencegraph import validate_graph
from isvc.api.validation.servingruntime import validate_runtime
from isvc.api.validation.trainedmodel import validate_trained_model
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.toolkit.cache import Reader
from isvc.toolkit.webhook import AdmissionRequest, Route, mutating, validating
from isvc.webhooks.answers import validator
from isvc.webhooks.inferenceservice import defaulter, service_validator
from isvc.webhooks.localmodel import cache_validator, namespace_cache_validator

READ = (CONFIG_MAPS, INFERENCE_SERVICES, SERVING_RUNTIMES, CLUSTER_SERVING_RUNTIMES)
READ_IF_THERE = (
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LLM_INFERENCE_SERVICES,
)
"""Kinds that the webhooks read from memory: those they cannot do without, and those of features that may be off."""


def manager_routes(reader: Reader, namespace: str = "kserve") -> dict[str, Route]:
    """The webhooks of `isvc-manager`, all but the pods'. The reader watches what `READ` and `READ_IF_THERE` list."""
    configuration = Configuration(reader, namespace)
    return {
        _path("mutate", "v1beta1", "inferenceservice"): mutating(defaulter(reader, configuration)),
        _path("validate", "v1beta1", "inferenceservice"): validating(service_validator(configuration)),
        _path("validate", "v1alpha1", "inferencegraph"): validating(validator(_graph)),
        _path("validate", "v1alpha1", "trainedmodel"): validating(validator(_trained_model)),
        _path("validate", "v1alpha1", "servingruntime"): validating(validator(_runtime(reader, configuration))),
        _path("validate", "v1alpha1", "clusterservingruntime"): validating(
            validator(_cluster_runtime(reader, configuration))
        ),
        _path("validate", "v1alpha1", "localmodelcache"): validating(cache_validator(reader)),
        _path("validate", "v1alpha1", "localmodelnamespacecache"): validating(namespace_cache_validator(reader)),
    }


def _path(verb: str, version: str, kind: str) -> str:
    return f"/{verb}-serving-kserve-io-{version}-{kind}"


def _graph(request: AdmissionRequest) -> Verdict:
    return validate_graph(request.object, request.old_object or None)


def _trained_model(request: AdmissionRequest) -> Verdict:
    return validate_trained_model(request.object, request.old_object or None)


def _runtime(reader: Reader, configuration: Callable[[], Config]) -> Callable[[AdmissionRequest], Verdict]:
    def judge(request: AdmissionRequest) -> Verdict:
        others = reader.list(SERVING_RUNTIMES, request.namespace)
        gpus = configuration().multi_node.gpu_resource_types
        return validate_runtime(request.object, others, request.old_object or None, ServingRuntime, gpus)

    return judge


def _cluster_runtime(reader: Reader, configuration: Callable[[], Config]) -> Callable[[AdmissionRequest], Verdict]:
    def judge(request: AdmissionRequest) -> Verdict:
        others = reader.list(CLUSTER_SERVING_RUNTIMES)
        gpus = configuration().multi_node.gpu_resource_types
        return validate_runtime(request.object, others, request.old_object or None, ClusterServingRuntime, gpus)

    return judge
