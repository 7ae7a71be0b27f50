"""Marks a service with the model cache that it uses, so that its pods find the model on their node's disk."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.api.annotations import (
    LOCAL_MODEL,
    LOCAL_MODEL_NAMESPACE,
    LOCAL_MODEL_PVC_NAME,
    LOCAL_MODEL_SOURCE_URI,
    NODE_GROUP,
)
from isvc.api.localmodel import LocalModelCache, LocalModelNamespaceCache, claim_name, covers_uri
from isvc.kube.objects import Object, annotations_of

Cache = LocalModelCache | LocalModelNamespaceCache


def mark_cached(service: Object, uri: str, caches: Iterable[Cache]) -> None:
    """Marks the service with the first cache that holds its model on nodes it may run on, or takes old marks away."""
    labels, annotations = _marks(uri, annotations_of(service).get(NODE_GROUP), caches)
    mark(service, "labels", labels, instead_of=(LOCAL_MODEL, LOCAL_MODEL_NAMESPACE))
    mark(service, "annotations", annotations, instead_of=(LOCAL_MODEL_SOURCE_URI, LOCAL_MODEL_PVC_NAME))


def mark(obj: Object, name: str, marks: dict[str, str], instead_of: Iterable[str] = ()) -> None:
    """Sets labels or annotations, after taking others away."""
    metadata = obj.setdefault("metadata", {})
    before = metadata.get(name) or {}
    after = {key: value for key, value in before.items() if key not in instead_of} | marks
    if after != before:
        metadata[name] = after


def _marks(uri: str, group: str | None, caches: Iterable[Cache]) -> tuple[dict[str, str], dict[str, str]]:
    for cache in caches:
        source, groups = cache.spec.source_model_uri, cache.spec.node_groups
        chosen = group if group is not None else next(iter(groups), None)
        if chosen not in groups or not covers_uri(source, uri):
            continue
        name, namespace = cache.metadata.name, cache.metadata.namespace
        return (
            {LOCAL_MODEL: name} | ({LOCAL_MODEL_NAMESPACE: namespace} if namespace else {}),
            {LOCAL_MODEL_SOURCE_URI: source, LOCAL_MODEL_PVC_NAME: claim_name(name, chosen)},
        )
    return {}, {}
