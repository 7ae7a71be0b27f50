"""CustomResourceDefinitions of our kinds, made from their types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from isvc.api import resources
from isvc.api.inferencegraph import InferenceGraph
from isvc.api.inferenceservice import InferenceService
from isvc.api.llm import v1alpha1, v1alpha2
from isvc.api.localmodel import LocalModelCache, LocalModelNamespaceCache, LocalModelNode, LocalModelNodeGroup
from isvc.api.meta import Kind
from isvc.api.schema import schema_for
from isvc.api.servingruntime import ClusterServingRuntime, ServingRuntime
from isvc.api.storagecontainer import ClusterStorageContainer
from isvc.api.trainedmodel import TrainedModel
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.kube.schemas import Schema


def _column(name: str, path: str, kind: str = "string", **more: Any) -> Object:
    return {"name": name, "type": kind, "jsonPath": path, **more}


def _condition(field: str) -> str:
    return f".status.conditions[?(@.type=='Ready')].{field}"


_AGE = _column("Age", ".metadata.creationTimestamp", "date")
_URL = _column("URL", ".status.url")
_READY = _column("Ready", _condition("status"))
_REASON = _column("Reason", _condition("reason"))
_WHY = (  # with -o wide
    _column("Reason", _condition("reason"), priority=1),
    _column("Message", _condition("message"), priority=1),
)
_TRAFFIC = ".status.components.predictor.traffic"
_NEW, _PREVIOUS = "[?(@.latestRevision==true)]", "[?(@.tag=='prev')]"
_SERVICE = (
    _URL,
    _READY,
    _column("Prev", f"{_TRAFFIC}{_PREVIOUS}.percent", "integer"),
    _column("Latest", f"{_TRAFFIC}{_NEW}.percent", "integer"),
    _column("PrevRolledoutRevision", f"{_TRAFFIC}{_PREVIOUS}.revisionName"),
    _column("LatestReadyRevision", f"{_TRAFFIC}{_NEW}.revisionName"),
    _AGE,
    *_WHY,
)
_RUNTIME = (
    _column("Disabled", ".spec.disabled", "boolean"),
    _column("ModelType", ".spec.supportedModelFormats[*].name"),
    _column("Containers", ".spec.containers[*].name"),
    _AGE,
)
_LLM = (_URL, _READY, _REASON, _AGE, _column("URLs", ".status.addresses[*].url", priority=1))


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind of ours: its versions, the stored one last, and how kubectl shows it."""

    resource: Resource
    versions: tuple[tuple[str, type[Kind]], ...]
    columns: tuple[Object, ...] = ()
    short_names: tuple[str, ...] = ()
    status: bool = True


def _one(resource: Resource, kind: type[Kind], **more: Any) -> Definition:
    return Definition(resource, ((resource.version, kind),), **more)


DEFINITIONS: tuple[Definition, ...] = (
    _one(resources.INFERENCE_SERVICES, InferenceService, columns=_SERVICE, short_names=("isvc",)),
    _one(resources.SERVING_RUNTIMES, ServingRuntime, columns=_RUNTIME, status=False),
    _one(resources.CLUSTER_SERVING_RUNTIMES, ClusterServingRuntime, columns=_RUNTIME, status=False),
    _one(resources.CLUSTER_STORAGE_CONTAINERS, ClusterStorageContainer, status=False),
    _one(resources.INFERENCE_GRAPHS, InferenceGraph, columns=(_URL, _READY, _AGE, *_WHY), short_names=("ig",)),
    _one(resources.TRAINED_MODELS, TrainedModel, columns=(_URL, _READY, _AGE, *_WHY), short_names=("tm",)),
    _one(resources.LOCAL_MODEL_CACHES, LocalModelCache),
    _one(resources.LOCAL_MODEL_NAMESPACE_CACHES, LocalModelNamespaceCache),
    _one(resources.LOCAL_MODEL_NODE_GROUPS, LocalModelNodeGroup, status=False),
    _one(resources.LOCAL_MODEL_NODES, LocalModelNode),
    Definition(
        resources.LLM_INFERENCE_SERVICES,
        (("v1alpha1", v1alpha1.LLMInferenceService), ("v1alpha2", v1alpha2.LLMInferenceService)),
        columns=_LLM,
        short_names=("llmisvc",),
    ),
    Definition(
        resources.LLM_INFERENCE_SERVICE_CONFIGS,
        (("v1alpha1", v1alpha1.LLMInferenceServiceConfig), ("v1alpha2", v1alpha2.LLMInferenceServiceConfig)),
        columns=(_READY, _REASON, _AGE),
    ),
)


def crds(*, described: bool) -> Iterator[Object]:
    """Yields all our CRDs, with or without what `kubectl explain` tells."""
    for definition in DEFINITIONS:
        yield crd(definition, described=described)


def crd(definition: Definition, *, described: bool) -> Object:
    resource = definition.resource
    names: Object = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    stored = definition.versions[-1][0]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": str(resource)},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                _version(definition, version, kind, stored=version == stored, described=described)
                for version, kind in definition.versions
            ],
        },
    }


def _version(definition: Definition, name: str, kind: type[Kind], *, stored: bool, described: bool) -> Object:
    version: Object = {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": _copy_sorted(schema_for(kind, described))},
    }
    if definition.columns:
        version["additionalPrinterColumns"] = [dict(column) for column in definition.columns]
    if definition.status:
        version["subresources"] = {"status": {}}
    return version


def _copy_sorted(schema: Schema) -> Schema:
    """Returns the schema with nothing shared, in order."""
    copy = dict(sorted(schema.items()))
    if "properties" in schema:
        copy["properties"] = {name: _copy_sorted(each) for name, each in sorted(schema["properties"].items())}
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            copy[inner] = _copy_sorted(schema[inner])
    return copy
