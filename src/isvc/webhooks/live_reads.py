"""Reads from the API server at the moment of a decision; nothing that was read is cached.

Reads follow from one another: a service account names the secrets to read. What was read next the last time is read
ahead, at the same time, so that a pod waits for one round trip in place of two or three. Only names are remembered for
that; a wrong guess costs a request and decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeAlias

from isvc.engine.needs import Need, Stored
from isvc.kube.errors import ApiError, InternalError, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.wire.bounded import Bounded

MOST_REMEMBERED: Final = 4096


class Getter(Protocol):
    """The part of a client that is needed."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


Question: TypeAlias = tuple[Need[Any], ...]
"""What a decision asks for at once."""


class LiveReads:
    """What all decisions share: the client, reads under way, and which question followed which."""

    def __init__(self, client: Getter) -> None:
        self._client = client
        self._under_way: dict[Need[Any], asyncio.Task[Object | None]] = {}
        self._followed: Bounded[Question, Question] = Bounded(MOST_REMEMBERED)

    def begin(self, need: Need[Any]) -> asyncio.Task[Object | None]:
        """Pods of one workload come many at a time: they share a request that is under way."""
        task = self._under_way.get(need)
        if task is None:
            task = self._under_way[need] = asyncio.create_task(self._read(need))

            def ended(task: asyncio.Task[Object | None]) -> None:
                self._under_way.pop(need, None)
                if not task.cancelled():
                    task.exception()  # the error of a wrong guess is not looked at otherwise

            task.add_done_callback(ended)
        return task

    def after(self, question: Question) -> Question | None:
        """Returns what was asked for after this, the last time."""
        return self._followed.get(question)

    def note(self, question: Question, then: Question | None) -> None:
        if then is None:
            self._followed.pop(question, None)
        else:
            self._followed[question] = then

    async def _read(self, need: Need[Any]) -> Object | None:
        assert isinstance(need, Stored)  # a pod needs nothing else
        try:
            return await self._client.get(need.resource, need.name, need.namespace)
        except NotFound:
            return None
        except ApiError as error:
            raise InternalError(f'cannot read {need.resource.kind} "{need.name}": {error.message}') from error


class ReadSequence:
    """The reads of one decision, one after another."""

    def __init__(self, reads: LiveReads) -> None:
        self._reads = reads
        self._begun: dict[Question, list[asyncio.Task[Object | None]]] = {}
        self._last: Question | None = None

    async def ask(self, needs: Iterable[Need[Any]]) -> dict[Need[Any], Object | None]:
        question = tuple(needs)
        self._note(question)
        ahead: Question | None = question
        while ahead is not None and ahead not in self._begun:
            self._begun[ahead] = [self._reads.begin(need) for need in ahead]
            ahead = self._reads.after(ahead)
        tasks = self._begun[question]
        return {need: await asyncio.shield(task) for need, task in zip(question, tasks, strict=True)}

    def end(self) -> None:
        """The decision is made; nothing follows the last question."""
        self._note(None)

    def _note(self, question: Question | None) -> None:
        if self._last is not None:
            self._reads.note(self._last, question)
        self._last = question
