"""Reads of what is not in memory, always fresh: nothing that was read is kept.

Reads follow from one another: a service account says which secrets matter. What followed the last time is read ahead,
beside what is asked now, so that a pod waits for one round trip where it would for two or three. Only the names of what
followed are remembered; a guess that turns out wrong costs a request and decides nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple, Protocol

from isvc.kube.errors import ApiError, InternalError, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import Resource

REMEMBERED: Final = 4096


class Getter(Protocol):
    """The one thing it asks an API server for."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


class Question(NamedTuple):
    resource: Resource
    namespace: str
    names: tuple[str, ...]


class Reads:
    """What all pods share: the client, reads under way, and what followed what."""

    def __init__(self, client: Getter) -> None:
        self._client = client
        self._under_way: dict[tuple[Resource, str, str], asyncio.Task[Object | None]] = {}
        self._followed: dict[Question, Question] = {}

    def begin(self, resource: Resource, namespace: str, name: str) -> asyncio.Task[Object | None]:
        """Pods of one workload come many at a time: they share a request that is under way."""
        key = (resource, namespace, name)
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._get(*key))

            def ended(task: asyncio.Task[Object | None]) -> None:
                self._under_way.pop(key, None)
                if not task.cancelled():
                    task.exception()  # of a wrong guess nobody else asks

            task.add_done_callback(ended)
        return task

    def after(self, question: Question) -> Question | None:
        """What was asked next when this had been answered."""
        return self._followed.get(question)

    def note(self, question: Question, then: Question | None) -> None:
        if then is None:
            self._followed.pop(question, None)
            return
        self._followed[question] = then
        if len(self._followed) > REMEMBERED:
            del self._followed[next(iter(self._followed))]

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None
        except ApiError as error:
            raise InternalError(f'cannot read {resource.kind} "{name}": {error.message}') from error


class Conversation:
    """What one decision asks, question by question."""

    def __init__(self, reads: Reads, namespace: str) -> None:
        self._reads, self._namespace = reads, namespace
        self._begun: dict[Question, list[asyncio.Task[Object | None]]] = {}
        self._last: Question | None = None

    async def ask(self, resource: Resource, names: tuple[str, ...]) -> dict[str, Object | None]:
        question = Question(resource, self._namespace, names)
        self._note(question)
        ahead: Question | None = question
        while ahead is not None and ahead not in self._begun:
            self._begun[ahead] = [self._reads.begin(ahead.resource, ahead.namespace, name) for name in ahead.names]
            ahead = self._reads.after(ahead)
        tasks = self._begun[question]
        return {name: await asyncio.shield(task) for name, task in zip(names, tasks, strict=True)}

    def end(self) -> None:
        """The decision is made; nothing follows the last question."""
        self._note(None)

    def _note(self, question: Question | None) -> None:
        if self._last is not None:
            self._reads.note(self._last, question)
        self._last = question
