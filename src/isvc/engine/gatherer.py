"""Answers what decisions need from a cluster: each question once at a time, and again when its answer is too old.

Whoever wants to know what should exist for an object asks here: the reconciler, and those who only look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from isvc.engine.kind import Folded, Kind, O, P
from isvc.engine.needs import UNKNOWN, Answers, DryRun, Need, ServerVersion, Stored, gather
from isvc.engine.plan import Plan
from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.kube.timestamps import timestamp
from isvc.toolkit.clock import Clock
from isvc.wire.bounded import Expiring

T = TypeVar("T")

_MOST_REMEMBERED: Final = 10_000


class Source(Protocol):
    """What is needed of a client."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...
    async def create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object: ...
    async def server_version(self) -> tuple[str, str]: ...


class Gatherer:
    def __init__(self, source: Source, clock: Clock) -> None:
        self._source, self._clock = source, clock
        self._remembered: Expiring[Need[Any], Any] = Expiring(_MOST_REMEMBERED, clock.monotonic)
        self._under_way: dict[Need[Any], asyncio.Task[Any]] = {}

    def answers(self) -> Answers:
        """Returns what is known at the start of a decision: whatever was found out for others and still holds."""
        return Answers(recall=self._recall)

    async def observe(self, kind: Kind[O, P], raw: Object, answers: Answers) -> O:
        return await self.gather(partial(kind.observe, raw, answers, self._now()), answers)

    async def plan(self, kind: Kind[O, P], observed: O, answers: Answers) -> P:
        return await self.gather(partial(kind.plan, observed), answers)

    async def finalize(self, kind: Kind[O, P], raw: Object, answers: Answers) -> Plan | Folded:
        return await self.gather(partial(kind.finalize, raw, answers, self._now()), answers)

    async def gather(self, decide: Callable[[], T], answers: Answers) -> T:
        """Returns what is decided once everything is known."""
        return await gather(decide, answers, self.ask)

    async def ask(self, needs: Iterable[Need[Any]]) -> Mapping[Need[Any], Any]:
        asked = list(needs)
        return dict(zip(asked, await asyncio.gather(*map(self._answer, asked)), strict=True))

    def _now(self) -> str:
        return timestamp(self._clock.now())

    def _recall(self, need: Need[Any]) -> Any:
        return self._remembered.get(need, UNKNOWN)

    async def _answer(self, need: Need[Any]) -> Any:
        if not need.is_shared:
            return await self._find_out(need)
        task = self._under_way.get(need)
        if task is None:
            task = self._under_way[need] = asyncio.create_task(self._find_out(need))
            task.add_done_callback(lambda _: self._under_way.pop(need))
        return await asyncio.shield(task)

    async def _find_out(self, need: Need[Any]) -> Any:
        match need:
            case Stored():
                answer: Any = await self._read_stored(need)
            case ServerVersion():
                answer = await self._source.server_version()
            case DryRun():
                answer = await self._refusal(need)
            case _:
                raise TypeError(f"nobody answers {need}")
        if lasts := need.lasts(answer):
            self._remembered.keep(need, answer, lasts)
        return answer

    async def _read_stored(self, need: Stored) -> Object | None:
        try:
            return await self._source.get(need.resource, need.name, need.namespace)
        except NotFound:
            return None

    async def _refusal(self, need: DryRun) -> ApiError | None:
        try:
            await self._source.create(need.resource, need.manifest, dry_run=True)
        except ApiError as error:
            return error
        return None
