"""Committed objects, parsed: what admission and the background tasks look things up with."""

from __future__ import annotations

from collections.abc import Mapping

from isvc.apiserver.store.store import Store
from isvc.kube.objects import Object


class Reader:
    """A collection is named after its resource: `services`, `customresourcedefinitions.apiextensions.k8s.io`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, collection: str, name: str, namespace: str = "") -> Object | None:
        entry = self._store.get(collection, namespace, name)
        return entry.parse() if entry else None

    def raw(self, collection: str, name: str, namespace: str = "") -> bytes | None:
        """Returns the object as JSON, for who looks at a small part of a large one."""
        entry = self._store.get(collection, namespace, name)
        return entry.raw if entry else None

    def labels(self, collection: str, name: str, namespace: str = "") -> Mapping[str, str]:
        """Returns the labels of an object, none if it is not there; quicker than a look at the whole."""
        entry = self._store.get(collection, namespace, name)
        return entry.labels if entry else {}

    def list(self, collection: str, namespace: str = "") -> list[Object]:
        return [entry.parse() for entry in self._store.list(collection, namespace)]

    def revision(self, collection: str) -> int:
        """Returns a number that changes whenever something in the collection does."""
        return self._store.revision(collection)
