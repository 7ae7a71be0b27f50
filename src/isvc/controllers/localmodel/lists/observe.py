"""Reads what the list of a node follows from: the node, and every cache with its groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from isvc.api.codec import DecodeError
from isvc.api.completion import read
from isvc.api.localmodel import LocalModelCache, LocalModelNode
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES, LOCAL_MODEL_NODE_GROUPS
from isvc.controllers.localmodel import kind as cluster
from isvc.controllers.localmodel.entries import entry_of
from isvc.controllers.localmodel.namespace import kind as namespace
from isvc.controllers.localmodel.node_groups import Group, NodeGroups
from isvc.engine import kind as engine
from isvc.engine.needs import Answers
from isvc.kube.objects import Key, Object, finalizers_of, is_being_deleted, name_of
from isvc.kube.resource import NODES
from isvc.toolkit.cache import Reader

_KINDS = ((LOCAL_MODEL_CACHES, cluster.FINALIZER), (LOCAL_MODEL_NAMESPACE_CACHES, namespace.FINALIZER))


@dataclass(frozen=True, slots=True)
class Cached:
    """A cache as lists see it: its entry for each of its groups, or None while nobody knows where it belongs."""

    key: Key
    entries: tuple[tuple[Group, Object], ...] | None


@dataclass(frozen=True)
class Observed(engine.Observed):
    """A list. `exists` says whether its node does."""

    exists: bool
    caches: tuple[Cached, ...]


class Observer:
    """Caches are read once for the lists of all nodes, and again when one of them, a node or a group changes."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._node_groups = NodeGroups(reader)
        self._editions: tuple[int, ...] = ()
        self._caches: tuple[Cached, ...] = ()

    def observe(self, raw: Object, answers: Answers, now: str) -> Observed:
        raw, _ = read(LocalModelNode, raw)
        exists = self._reader.get(NODES, name_of(raw)) is not None
        return Observed(raw, exists, self._read_caches(), answers=answers, now=now)

    def _read_caches(self) -> tuple[Cached, ...]:
        kinds = (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES, LOCAL_MODEL_NODE_GROUPS, NODES)
        editions = tuple(map(self._reader.edition, kinds))
        if editions != self._editions:
            self._caches, self._editions = tuple(self._live_caches()), editions
        return self._caches

    def _live_caches(self) -> Iterator[Cached]:
        for resource, finalizer in _KINDS:
            for raw in self._reader.list(resource):
                if not is_being_deleted(raw):
                    is_claimed = finalizer in finalizers_of(raw)
                    yield Cached(Key.of(raw), self._entries(raw) if is_claimed else None)

    def _entries(self, raw: Object) -> tuple[tuple[Group, Object], ...] | None:
        try:
            spec = read(LocalModelCache, raw)[1].spec
            groups = {name: self._node_groups.get(name) for name in spec.node_groups}
        except DecodeError:
            return None
        found = [(group, entry_of(Key.of(raw), spec, name)) for name, group in groups.items() if group is not None]
        return tuple(found) if len(found) == len(groups) else None
