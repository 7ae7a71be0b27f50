"""Writes what a reconcile came to: the status if it is new, and events.

An object becomes ready piece by piece. A status that only adds to that may wait a moment for the next piece, so that
one write says several; whatever a user waits for or has to know goes out at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, Generic

import orjson

from isvc.engine.commit import Commit
from isvc.engine.comparison import digest
from isvc.engine.events import WARNING, Event
from isvc.engine.kind import Folded, Kind, O, P
from isvc.engine.pauses import Pauses
from isvc.kube.conditions import FALSE, find
from isvc.kube.equality import equivalent
from isvc.kube.masking import mask_conditions
from isvc.kube.objects import Key, Object
from isvc.toolkit.controller import Result
from isvc.toolkit.recorder import EventRecorder

STATUS = "status"
LONGEST_TEXT: Final = 32_768
"""Characters, as many as Kubernetes' own conditions may have: a status that quotes a megabyte cannot be written."""


class Reporter(Generic[O, P]):
    def __init__(
        self,
        kind: Kind[O, P],
        commit: Commit,
        recorder: EventRecorder,
        pauses: Pauses,
        on_repair: Callable[[Object, Sequence[str]], None] = lambda owner, parts: None,
    ) -> None:
        """`on_repair` is called when a status was written that somebody else had changed."""
        self._kind = kind
        self._commit = commit
        self._recorder = recorder
        self._pauses = pauses
        self._on_repair = on_repair
        self._written: dict[Key, int] = {}  # what the last status that was written looks like
        self._warnings: dict[Key, frozenset[Event]] = {}
        self._reported: dict[Key, Object] = {}  # the last status known to be written, while a newer one is under way

    async def publish(self, owner: Object, folded: Folded) -> Result | None:
        """Writes the status if it changed and records events; returns when to look again."""
        key, before = Key.of(owner), owner.get("status") or {}
        folded = replace(folded, status=shorten(mask_conditions(folded.status)))
        events, is_news, kind = folded.events, not equivalent(before, folded.status), self._kind
        may_wait = is_news and kind.patience and not is_urgent(before, folded.status)
        if pause := self._pauses.wait(key, STATUS, kind.patience if may_wait else 0.0):
            return Result(requeue_after=pause, lapses=True)
        if folded.annotations:
            owner = await self._commit.metadata(kind.resource, owner, annotations=folded.annotations) or owner
        if is_news:
            self._reported.setdefault(key, before)
            written = await self._commit.status(kind.resource, owner, folded.status)
            self._pauses.clear(key, STATUS)
            self._note_written(owner, written)
        if (reported := self._reported.pop(key, None)) is not None:  # the answer to an earlier write may have been lost
            events = (*events, *kind.readiness_events(owner, reported, folded.status))
        self._record(owner, events, is_news=is_news)
        return None if folded.again is None else Result(requeue_after=folded.again)

    def _note_written(self, before: Object, after: Object | None) -> None:
        key = Key.of(before)
        if self._written.get(key) not in (None, digest(before.get("status") or {})):
            self._on_repair(before, [STATUS])
        if after is not None:
            self._written[key] = digest(after.get("status") or {})

    def record(self, owner: Object, *events: Event) -> None:
        for event in events:
            self._recorder.event(owner, *event)

    def forget(self, key: Key) -> None:
        self._warnings.pop(key, None)
        self._written.pop(key, None)
        self._reported.pop(key, None)

    def _record(self, owner: Object, events: tuple[Event, ...], *, is_news: bool) -> None:
        """A warning is recorded once. After a start, when nobody knows what was, only if the status changes, too.

        Of an object without conditions nothing else says it: it is recorded then, as well.
        """
        warnings = frozenset(event for event in events if event.type == WARNING)
        known = self._warnings.get(Key.of(owner))
        self._warnings[Key.of(owner)] = warnings
        for event in events:
            is_first = self._kind.conditions is None if known is None else event not in known
            if event not in warnings or is_news or is_first:
                self._recorder.event(owner, *event)


def shorten(status: Object) -> Object:
    """Returns a status with texts that fit into one: people write what conditions and failures quote."""
    return status if len(orjson.dumps(status)) <= LONGEST_TEXT else _shorten(status)


def _shorten(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= LONGEST_TEXT else f"{value[: LONGEST_TEXT - 1]}…"
        case dict():
            return {key: _shorten(each) for key, each in value.items()}
        case list():
            return [_shorten(each) for each in value]
    return value


def is_urgent(before: Object, after: Object) -> bool:
    """Returns whether the difference between two statuses is more than one more piece being ready."""
    if before.get("observedGeneration") != after.get("observedGeneration"):
        return True
    was, now = before.get("conditions") or (), after.get("conditions") or ()
    if (find(was, "Ready") or {}).get("status") != (find(now, "Ready") or {}).get("status"):
        return True
    return any(
        condition.get("status") == FALSE and (find(was, condition["type"]) or {}).get("status") != FALSE
        for condition in now
    )
