"""Causes in the cache that a model comes from: no node has it, one is still downloading it, or why it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from isvc.api import localmodel
from isvc.api.model_downloads import ModelDownload, decode_downloads
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES, LOCAL_MODEL_NODES, MODEL_CACHES
from isvc.controllers.localmodel.entries import cache_used_by, entries_of, key_of
from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.kube.objects import Key, Object, dig, name_of
from isvc.kube.resource import Resource

_CACHES: Final = {each.kind: each for each in MODEL_CACHES}
_MOST_NODES: Final = 5


def cache_key(service: Object) -> tuple[Resource, Key] | None:
    """Returns which cache a service is marked with, or that it is one itself."""
    if (own := _CACHES.get(str(service.get("kind")))) is not None:
        return own, Key.of(service)
    used = cache_used_by(service)
    if used is None:
        return None
    return LOCAL_MODEL_NAMESPACE_CACHES if used.namespace else LOCAL_MODEL_CACHES, used


def cache_of(service: Object, objects: Mapping[Resource, Sequence[Object]]) -> Object | None:
    """Returns the cache of a service among these objects."""
    resource, key = cache_key(service) or (LOCAL_MODEL_CACHES, None)
    return next((each for each in objects.get(resource, ()) if Key.of(each) == key), None)


def lists_of(service: Object, objects: Mapping[Resource, Sequence[Object]]) -> list[Object]:
    """Returns the lists of nodes that have the model of a service's cache."""
    found = cache_key(service)
    return [each for each in objects.get(LOCAL_MODEL_NODES, ()) if found and found[1] in map(key_of, entries_of(each))]


def not_cached(evidence: Evidence) -> Iterator[Finding]:
    """Yields why nobody downloads the model."""
    found = cache_key(evidence.service)
    if found is None or evidence.lists:
        return
    title = f"{found[0].kind} {found[1]}"
    if evidence.cache is None and found[0] in evidence.unread:
        message = f"its model is to come from {title}, and you may not read {found[0].plural}"
        yield Finding("NotAllowedToRead", message, "ask as somebody who may", Level.WARNS)
    elif evidence.cache is None:
        message = f"its model is to come from {title}, which does not exist"
        yield Finding("CacheNotFound", message, "create it, or write the service again so that it is marked anew")
    elif not dig(evidence.cache, "status", "nodeStatus"):
        message = f"no node is to have the model of {title}"
        remedy = (
            "see whether its LocalModelNodeGroup selects nodes that are ready, and whether localmodel-manager runs:"
            " the chart has it with localmodel.enabled=true"
        )
        yield Finding("ModelOnNoNode", message, remedy)


def download_failed(evidence: Evidence) -> Iterator[Finding]:
    failed = [each for each in evidence.lists if _state(evidence, each) == localmodel.FAILED]
    if not failed:
        return
    level = Level.WARNS if _is_somewhere(evidence) and not _is_cache(evidence) else Level.BLOCKS
    message = f"the model of {_title(evidence)} could not be downloaded: " + "; ".join(
        _sentence(evidence, each) for each in failed[:_MOST_NODES]
    )
    remedy = "mend what it says; the node tries again by itself"
    yield Finding("ModelDownloadFailed", message, remedy, level)


def downloading(evidence: Evidence) -> Iterator[Finding]:
    """Yields how far the download is, while no node has the model, or of a cache, not all have."""
    missing = [each for each in evidence.lists if _state(evidence, each) != localmodel.DOWNLOADED]
    if missing and (_is_cache(evidence) or not _is_somewhere(evidence)):
        where = "not on all nodes" if _is_somewhere(evidence) else "on no node"
        message = f"the model of {_title(evidence)} is {where} yet: " + "; ".join(
            _sentence(evidence, each) for each in missing[:_MOST_NODES]
        )
        yield Finding("ModelDownloading", message, "wait until the download is complete", Level.WAITS)


def _sentence(evidence: Evidence, node: Object) -> str:
    """Returns what a node does about the model: how much of it it has, since when, and what went wrong last."""
    download = decode_downloads(node).get(_key(evidence), ModelDownload())
    match _state(evidence, node):
        case localmodel.DOWNLOADING:
            done = f"node {name_of(node)} is downloading it"
        case localmodel.FAILED:
            done = f"node {name_of(node)} failed"
        case _:
            return f"node {name_of(node)} has not begun"
    if download.bytes:
        of_all = f" of {size(download.total_bytes)}" if download.total_bytes else ""
        done += f", {size(download.bytes)}{of_all}"
    if download.seconds:
        done += f" after {download.seconds:.0f} s"
    if download.attempts > 1:
        done += f", attempt {download.attempts}"
    return f"{done}: {download.error}" if download.error else done


def size(count: int) -> str:
    """`1.5 GiB`"""
    amount, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.1f} {units[0]}" if units[0] != "B" else f"{count} B"


def _is_cache(evidence: Evidence) -> bool:
    return evidence.kind in _CACHES


def _is_somewhere(evidence: Evidence) -> bool:
    return any(_state(evidence, each) == localmodel.DOWNLOADED for each in evidence.lists)


def _title(evidence: Evidence) -> str:
    return f"{(evidence.cache or {}).get('kind') or 'cache'} {_key(evidence)}"


def _key(evidence: Evidence) -> str:
    found = cache_key(evidence.service)
    return str(found[1]) if found else ""


def _state(evidence: Evidence, node: Object) -> str:
    return str((dig(node, "status", "modelStatus") or {}).get(_key(evidence)) or "")
