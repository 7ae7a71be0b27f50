"""Validates model caches and their deletion."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_NAMESPACE
from isvc.api.completion import complete
from isvc.api.localmodel import LocalModelCache, LocalModelNamespaceCache
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.kube.objects import Object, labels_of, name_of, namespace_of


def validate_cache(new: Object, others: Iterable[Object], old: Object | None = None) -> Verdict:
    """Checks that no two LocalModelCaches hold the same model."""
    new = complete(new, LocalModelCache)
    cache = LocalModelCache.decode(new)
    if is_exempt(old, new):
        return GOOD
    uri = cache.spec.source_model_uri
    return Verdict.of(
        Problem("spec.sourceModelUri", f"LocalModelCache {name_of(other)} has the same StorageURI {uri}")
        for other in others
        if name_of(other) != cache.metadata.name and LocalModelCache.decode(other).spec.source_model_uri == uri
    )


def validate_namespace_cache(new: Object, node_groups: Iterable[str], old: Object | None = None) -> Verdict:
    """Checks that the node groups of a LocalModelNamespaceCache exist."""
    new = complete(new, LocalModelNamespaceCache)
    cache = LocalModelNamespaceCache.decode(new)
    if is_exempt(old, new):
        return GOOD
    known = set(node_groups)
    return Verdict.of(
        Problem(f"spec.nodeGroups[{index}]", f"NodeGroup {group} not found: create a LocalModelNodeGroup of that name")
        for index, group in enumerate(cache.spec.node_groups)
        if group not in known
    )


def validate_deletion(cache: Object, services: Iterable[Object]) -> Verdict:
    """Lets a cache go once no service that its status names uses it. `services` are those that still exist."""
    return Verdict.of(_users(cache, services))


def _users(cache: Object, services: Iterable[Object]) -> Iterator[Problem]:
    name, namespace = name_of(cache), namespace_of(cache)
    for service in services:
        labels = labels_of(service)
        if labels.get(LOCAL_MODEL) == name and (not namespace or labels.get(LOCAL_MODEL_NAMESPACE) == namespace):
            yield Problem(
                "status",
                f"is being used by {service.get('kind', 'the service')} {namespace_of(service)}/{name_of(service)};"
                " delete that first",
            )
