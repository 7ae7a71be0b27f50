"""One kind as the cache holds it: an informer for each selection, read as if they were one.

Most kinds have a single selection. Where there are several, an object may be in more than one of them; the newest
version counts. A kind that may not be read has none, and is empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from isvc.kube.objects import Key, Object
from isvc.toolkit.cache.informer import Handler, Informer
from isvc.toolkit.store import Store


class Mirror:
    def __init__(self, informers: Sequence[Informer]) -> None:
        self.informers = tuple(informers)
        self._stores = tuple(informer.store for informer in self.informers)
        self._only = self._stores[0] if len(self._stores) == 1 else None

    @property
    def synced(self) -> bool:
        if len(self.informers) == 1:
            return self.informers[0].synced
        return bool(self.informers) and all(informer.synced for informer in self.informers)

    @property
    def forbidden(self) -> bool:
        return any(informer.forbidden for informer in self.informers)

    @property
    def edition(self) -> int:
        return sum(store.edition for store in self._stores)

    async def wait_for_sync(self) -> None:
        await asyncio.gather(*(informer.wait_for_sync() for informer in self.informers))

    def subscribe(self, handler: Handler, *, before: bool) -> None:
        for informer in self.informers:
            informer.subscribe(handler, before=before)

    def note(self, obj: Object) -> None:
        for informer in self.informers:
            informer.note(obj)

    def get(self, key: Key) -> Object | None:
        if self._only is not None:
            return self._only.get(key)
        return self._newest(key).get(key) if self._stores else None

    def keys(self, index_name: str, value: str) -> Sequence[Key]:
        if self._only is not None:
            return self._only.keys(index_name, value)
        found = (key for store in self._stores for key in store.keys(index_name, value) if self._newest(key) is store)
        return sorted(found)

    def by_index(self, index_name: str, value: str) -> list[Object]:
        return [obj for key in self.keys(index_name, value) if (obj := self.get(key)) is not None]

    def all_keys(self, namespace: str) -> Sequence[Key]:
        if self._only is not None:
            return self._only.all_keys(namespace)
        return sorted({key for store in self._stores for key in store.all_keys(namespace)})

    def list(self, namespace: str) -> list[Object]:
        return [
            obj
            for store in self._stores
            for obj in store.list(namespace)
            if store is self._only or self._newest(Key.of(obj)) is store
        ]

    def _newest(self, key: Key) -> Store:
        """Returns the store with the newest version of the object; any, if none has it."""
        return max(self._stores, key=lambda store: store.version(key))
