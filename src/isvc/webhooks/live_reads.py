"""Reads from the API server at the moment of a decision; nothing that was read is cached.

Reads follow from one another: a service account names the secrets to read. What was read next the last time is read
ahead, at the same time, so that a pod waits for one round trip in place of two or three. Only names are remembered for
that; a wrong guess costs a request and decides nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, Protocol

from isvc.kube.errors import ApiError, InternalError, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import Resource

MOST_REMEMBERED: Final = 4096


class Getter(Protocol):
    """The part of a client that is needed."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


class Lookup(NamedTuple):
    resource: Resource
    namespace: str
    names: tuple[str, ...]


class LiveReads:
    """What all decisions share: the client, reads under way, and which read followed which."""

    def __init__(self, client: Getter) -> None:
        self._client = client
        self._under_way: dict[tuple[Resource, str, str], asyncio.Task[Object | None]] = {}
        self._followed: dict[Lookup, Lookup] = {}

    def begin(self, resource: Resource, namespace: str, name: str) -> asyncio.Task[Object | None]:
        """Pods of one workload come many at a time: they share a request that is under way."""
        key = (resource, namespace, name)
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._get(*key))

            def ended(task: asyncio.Task[Object | None]) -> None:
                self._under_way.pop(key, None)
                if not task.cancelled():
                    task.exception()  # the error of a wrong guess is not looked at otherwise

            task.add_done_callback(ended)
        return task

    def after(self, lookup: Lookup) -> Lookup | None:
        """What was looked up after this, the last time."""
        return self._followed.get(lookup)

    def note(self, lookup: Lookup, then: Lookup | None) -> None:
        if then is None:
            self._followed.pop(lookup, None)
            return
        self._followed[lookup] = then
        if len(self._followed) > MOST_REMEMBERED:
            del self._followed[next(iter(self._followed))]

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None
        except ApiError as error:
            raise InternalError(f'cannot read {resource.kind} "{name}": {error.message}') from error


class ReadSequence:
    """The reads of one decision, one after another."""

    def __init__(self, reads: LiveReads, namespace: str) -> None:
        self._reads, self._namespace = reads, namespace
        self._begun: dict[Lookup, list[asyncio.Task[Object | None]]] = {}
        self._last: Lookup | None = None

    async def read(self, resource: Resource, names: tuple[str, ...]) -> dict[str, Object | None]:
        lookup = Lookup(resource, self._namespace, names)
        self._note(lookup)
        ahead: Lookup | None = lookup
        while ahead is not None and ahead not in self._begun:
            self._begun[ahead] = [self._reads.begin(ahead.resource, ahead.namespace, name) for name in ahead.names]
            ahead = self._reads.after(ahead)
        tasks = self._begun[lookup]
        return {name: await asyncio.shield(task) for name, task in zip(names, tasks, strict=True)}

    def end(self) -> None:
        """The decision is made; nothing follows the last lookup."""
        self._note(None)

    def _note(self, lookup: Lookup | None) -> None:
        if self._last is not None:
            self._reads.note(self._last, lookup)
        self._last = lookup
