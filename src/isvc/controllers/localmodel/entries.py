"""Entries of caches in the lists of nodes, as KServe writes them, and the marks that services have of caches."""

from __future__ import annotations

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_NAMESPACE
from isvc.api.codec import encode
from isvc.api.localmodel import LocalModelCacheSpec, LocalModelInfo
from isvc.kube.objects import Key, Object, dig, labels_of, maps_in, namespace_of


def entry_of(cache: Key, spec: LocalModelCacheSpec, group: str) -> Object:
    """Returns the entry of a cache in the list of a node that has the model because it is in this group."""
    return encode(
        LocalModelInfo(
            source_model_uri=spec.source_model_uri,
            model_name=cache.name,
            namespace=cache.namespace,
            node_group=group,
            service_account_name=spec.service_account_name,
            storage=spec.storage,
        )
    )


def key_of(entry: Object) -> Key:
    """Returns the cache that an entry belongs to."""
    return Key(str(entry.get("namespace") or ""), str(entry.get("modelName") or ""))


def entries_of(node: Object | None) -> list[Object]:
    """Returns the list of a node, a LocalModelNode."""
    return maps_in(dig(node, "spec", "localModels"))


def cache_used_by(service: Object) -> Key | None:
    """Returns the cache that a service is marked with; one without a namespace is the cluster's."""
    labels = labels_of(service)
    name, namespace = labels.get(LOCAL_MODEL), labels.get(LOCAL_MODEL_NAMESPACE)
    if not name or namespace not in (None, namespace_of(service)):
        return None
    return Key(namespace or "", name)
