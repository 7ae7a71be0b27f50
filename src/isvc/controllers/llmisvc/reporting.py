"""Says what a reconcile found: writes the status if it is new, and records events.

A service becomes ready piece by piece. What only adds to that may wait a moment for the next piece, so that one status
tells several; whatever a user waits for or has to know goes out at once.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.status.conditions import READY
from isvc.engine.commit import Commit
from isvc.engine.events import WARNING, Event, failing, readiness_events
from isvc.kube.conditions import FALSE, find
from isvc.kube.equality import equivalent
from isvc.kube.objects import Key, Object, name_of
from isvc.toolkit.clock import Clock
from isvc.toolkit.controller import Result
from isvc.toolkit.recorder import EventRecorder

MOMENT: Final = 2.0


class Report(NamedTuple):
    """The status, events, and when to look again."""

    status: Object
    events: tuple[Event, ...] = ()
    after: Result | None = None


class Reporter:
    def __init__(self, commit: Commit, recorder: EventRecorder, clock: Clock) -> None:
        self._commit = commit
        self._recorder = recorder
        self._clock = clock
        self._warnings: dict[Key, frozenset[Event]] = {}
        self._due: dict[Key, float] = {}

    async def publish(self, raw: Object, report: Report) -> Result | None:
        key, before = Key.of(raw), raw.get("status") or {}
        is_news = not equivalent(before, report.status)
        self._record(raw, report.events, is_news=is_news)
        if is_news and not is_urgent(before, report.status):
            now = self._clock.monotonic()
            pause = self._due.setdefault(key, now + MOMENT) - now
            if pause > 0:
                return Result(requeue_after=pause)
        self._due.pop(key, None)
        if not is_news:
            return report.after
        await self._commit.status(LLM_INFERENCE_SERVICES, raw, report.status)
        because = [condition for condition in failing(report.status) if condition != READY]
        for event in readiness_events(
            LLM_INFERENCE_SERVICES.kind, name_of(raw), before, report.status, because=because
        ):
            self._recorder.event(raw, *event)
        return report.after

    def forget(self, key: Key) -> None:
        self._warnings.pop(key, None)
        self._due.pop(key, None)

    def _record(self, raw: Object, events: tuple[Event, ...], *, is_news: bool) -> None:
        """A warning is recorded once. After a start, when nobody knows what was, only if the status changes, too."""
        warnings = frozenset(event for event in events if event.type == WARNING)
        known = self._warnings.get(Key.of(raw))
        self._warnings[Key.of(raw)] = warnings
        for event in events:
            if event not in warnings or is_news or (known is not None and event not in known):
                self._recorder.event(raw, *event)


def is_urgent(before: Object, after: Object) -> bool:
    """Whether the difference between two statuses is more than one more piece being ready."""
    if before.get("observedGeneration") != after.get("observedGeneration"):
        return True
    was, now = before.get("conditions") or (), after.get("conditions") or ()
    if (find(was, READY) or {}).get("status") != (find(now, READY) or {}).get("status"):
        return True
    return any(
        condition.get("status") == FALSE and (find(was, condition["type"]) or {}).get("status") != FALSE
        for condition in now
    )
