"""The one reconciler: get, claim, observe, plan, apply, fold, publish, for every kind.

What cannot be read is reported as `InvalidSpec` and waits for an edit. A bug of ours is reported as `InternalError`,
counts as a panic, and is tried again with a backoff. What an API server answers, or that it does not, is transient.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, Generic, NamedTuple

from isvc.api.codec import DecodeError, decode
from isvc.engine.apply import Engine
from isvc.engine.commit import Commit
from isvc.engine.dependents import Dependents
from isvc.engine.events import WARNING, Event, child_events
from isvc.engine.gatherer import Gatherer
from isvc.engine.kind import Folded, Kind, O, P, Wait
from isvc.engine.needs import Answers
from isvc.engine.outcome import Outcome, Rejected
from isvc.engine.pauses import Pauses
from isvc.engine.plan import Plan
from isvc.engine.repairs import Repairs, contest, repaired_children
from isvc.engine.reporter import Reporter
from isvc.kube.conditions import FALSE, UNKNOWN
from isvc.kube.errors import ApiError, BadRequest, Forbidden, Invalid
from isvc.kube.objects import Key, Object, finalizers_of, generation_of, is_being_deleted, uid_of
from isvc.kube.timestamps import timestamp
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Result
from isvc.toolkit.failure import ClusterError

log = logging.getLogger(__name__)

AFTER_REPAIR: Final = 1.0  # who edits one child often edits another, without a watch that reports it
AFTER_REFUSAL: Final = 30.0  # a namesake may go away, or a quota grow, without a watch that reports it
LOOK, APPLY, REPAIR = "look", "apply", "repair"


class Report(NamedTuple):
    """What is to be published, and the object as it was last written."""

    owner: Object
    folded: Folded


class Reconciler(Generic[O, P]):
    def __init__(self, kind: Kind[O, P], context: Context) -> None:
        self.kind = kind
        self.dependents = Dependents()
        self._engine = Engine(context.client, context.cache)
        self._cache, self._clock = context.cache, context.clock
        self._gatherer = Gatherer(context.client, context.clock)
        self._commit = Commit(context.client, context.cache)
        self._pauses, self._repairs = Pauses(context.clock), Repairs(context.clock)
        self._claimed = set[Key]()
        self._awaited, self._waiting = "", set[Key]()
        self._uids: dict[Key, str] = {}  # of the objects that something is remembered of
        recorder = context.recorder.for_component(kind.event_source) if kind.event_source else context.recorder
        self._reporter = Reporter(kind, self._commit, recorder, self._pauses, self._note_repair)

    async def reconcile(self, key: Key) -> Result | None:
        raw = self._get(key)
        if raw is None:
            self._forget(key)
            return Result(is_gone=True)
        if self._uids.get(key) not in (None, uid_of(raw)):  # another one, which came before the first was missed
            self._forget(key)
        self._uids[key] = uid_of(raw)
        try:
            report = await (self._end(raw) if is_being_deleted(raw) else self._converge(raw))
        except (ApiError, ClusterError):
            raise
        except Wait as wait:
            if not self._waiting or str(wait) != self._awaited:  # all objects wait for the same: one line says it
                log.error("objects of kind %s wait: %s", self.kind.resource.kind, wait)
            self._awaited = str(wait)
            self._waiting.add(key)
            return Result(requeue_after=wait.seconds)
        except DecodeError as error:
            report = self._report_problem(raw, FALSE, "InvalidSpec", str(error))
        except Exception as error:
            await self._report_bug(key, error)
            raise
        self._waiting.discard(key)
        if not isinstance(report, Report):
            return report
        result = await self._reporter.publish(*report)
        self._pauses.begin(key, LOOK, report.folded.rest)
        return result

    async def _converge(self, raw: Object) -> Report | Result | None:
        """Does everything but reporting.

        What was observed and planned is freed here: a status write may have to wait.
        """
        kind, key, answers = self.kind, Key.of(raw), self._gatherer.answers()
        if pause := max(self._pauses.left(key, LOOK), self._pauses.left(key, _repair_of(raw))):
            return Result(requeue_after=pause, lapses=True)
        self.dependents.begin(key)
        observed = await self._gatherer.observe(kind, raw, answers)
        if (claimed := await self._claim(raw, observed)) is not raw:
            raw, observed = claimed, replace(observed, raw=claimed)
        planned = await self._plan(key, observed, answers)
        if planned.stop is not None:
            log.info("%s waits: %s", key, planned.stop.message)
        if pause := self._pauses.wait(key, APPLY, planned.pause):
            return Result(requeue_after=pause, lapses=True)
        outcome = Outcome() if planned.suspended else await self._apply(raw, planned)
        return Report(raw, _look_again(kind.fold(observed, planned, outcome), outcome))

    # -- steps ------------------------------------------------------------------------------------------------------

    async def _plan(self, key: Key, observed: O, answers: Answers) -> P:
        planned = await self._gatherer.plan(self.kind, observed, answers)
        if planned.references is not None:
            self.dependents.record(key, planned.references)
        return planned

    async def _claim(self, raw: Object, observed: O) -> Object:
        """Returns the object with its finalizer, and with what else it has to carry."""
        claim, kind = self.kind.claim(observed), self.kind
        if claim is None:
            return raw
        finalizers = finalizers_of(raw)
        if kind.finalizer and kind.finalizer not in finalizers:
            finalizers = [*finalizers, kind.finalizer]
        write = partial(self._commit.metadata, kind.resource, raw, finalizers=finalizers, labels=claim.labels)
        try:
            written = await write(spec=claim.spec)
        except (BadRequest, Forbidden, Invalid):  # by rules that are younger than the object
            if not claim.spec:
                raise
            written = await write()
        if written is None:
            return raw
        if (key := Key.of(raw)) in self._claimed:
            self._note_repair(raw, ["finalizers or labels"])
        self._claimed.add(key)
        return _with_sound_conditions(written)

    async def _apply(self, raw: Object, plan: Plan) -> Outcome:
        outcome = await self._engine.apply(raw, plan)
        if repaired := repaired_children(outcome):
            self._note_repair(raw, repaired)
        if self.kind.reports_children:
            self._reporter.record(raw, *child_events(outcome))
        return outcome

    async def _end(self, raw: Object) -> Report | None:
        """The end is a plan, too: what goes with the object goes, and then its finalizer."""
        kind, key, answers = self.kind, Key.of(raw), self._gatherer.answers()
        self.dependents.record(key, frozenset())
        if kind.finalizer not in finalizers_of(raw):
            return None
        ending = await self._gatherer.finalize(kind, raw, answers)
        if isinstance(ending, Folded):
            return Report(raw, ending)
        outcome = await self._apply(raw, ending)
        for result in outcome.results.values():
            if isinstance(result, Rejected):
                raise result.error
        await self._commit.remove_finalizer(kind.resource, raw, kind.finalizer)
        return None

    def _note_repair(self, raw: Object, parts: Sequence[str]) -> None:
        """Lets the object wait if it is repaired again and again; an edit of its spec is not kept waiting."""
        if pause := self._repairs.note(key := Key.of(raw)):
            event = contest(parts)
            log.warning("%s: %s; next time in %.3g s at the earliest", key, event.message, pause)
            self._reporter.record(raw, event)
            self._pauses.begin(key, _repair_of(raw), pause)

    # -- what goes wrong --------------------------------------------------------------------------------------------

    def _report_problem(self, raw: Object, status: str, reason: str, message: str) -> Report:
        before, events = self._readable_status(raw), (Event(WARNING, reason, message),)
        if (conditions := self.kind.conditions) is None:
            return Report(raw, Folded(before, events))
        edit = self.kind.edit_status(conditions, before, self._now())
        edit.initialize()
        edit.mark(next(iter(conditions.dependents), conditions.happy), status, reason, message)
        edit.fields["observedGeneration"] = generation_of(raw)
        return Report(raw, Folded(edit.result(), events))

    async def _report_bug(self, key: Key, error: Exception) -> None:
        if (raw := self._get(key)) is not None:
            kind = self.kind.resource.kind
            message = f"the controller failed, which is no fault of this {kind}: {type(error).__name__}: {error}"
            with suppress(ApiError, ClusterError):
                await self._reporter.publish(*self._report_problem(raw, UNKNOWN, "InternalError", message))

    def _readable_status(self, raw: Object) -> Object:
        """Returns the status to start from; one that is itself malformed starts over."""
        status: Object = raw.get("status") or {}
        try:
            decode(self.kind.api_type, {"metadata": {}, "status": status})
        except DecodeError:
            return {}
        return status

    # -- the rest ---------------------------------------------------------------------------------------------------

    def _get(self, key: Key) -> Object | None:
        raw = self._cache.get(self.kind.resource, key.name, key.namespace)
        return None if raw is None else _with_sound_conditions(raw)

    def _forget(self, key: Key) -> None:
        self.dependents.record(key, frozenset())
        self._waiting.discard(key)
        self._reporter.forget(key)
        self._pauses.forget(key)
        self._repairs.forget(key)
        self._claimed.discard(key)
        self._uids.pop(key, None)

    def _now(self) -> str:
        return timestamp(self._clock.now())


def _repair_of(raw: Object) -> str:
    return f"{REPAIR} of {generation_of(raw)}"


def _with_sound_conditions(raw: Object) -> Object:
    """Returns the object; a status with conditions that are none starts over, so that nobody trips over them."""
    status = raw.get("status") or {}
    conditions = status.get("conditions") or [] if isinstance(status, dict) else None
    is_sound = isinstance(conditions, list) and all(isinstance(each, dict) and each.get("type") for each in conditions)
    return raw if is_sound else {**raw, "status": {}}


def _look_again(folded: Folded, outcome: Outcome) -> Folded:
    """What an API server refused, or somebody else changed, is worth another look."""
    again = folded.again
    if outcome.refusal is not None:
        again = AFTER_REFUSAL if again is None else again
    elif outcome.has_repaired:
        again = AFTER_REPAIR if again is None else min(again, AFTER_REPAIR)
    return folded if again == folded.again else replace(folded, again=again)
