"""What a kind says of itself to the one reconciler: how it is observed, planned, folded and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from isvc.api.meta import Kind as APIType
from isvc.engine.events import Event
from isvc.engine.needs import Answers
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Plan, Reference, Stop
from isvc.engine.status import StatusEditor
from isvc.kube.conditions import ConditionSet
from isvc.kube.objects import Object, generation_of, name_of, namespace_of
from isvc.kube.resource import Resource


@dataclass(frozen=True)
class Observed:
    """Everything that one decision is based on, frozen into one value. A kind extends it by what is its own.

    `raw` is the object, `answers` what had to be found out for it, `now` the time to stamp transitions with.
    """

    raw: Object
    answers: Answers = field(default_factory=Answers, kw_only=True)
    now: str = field(default="", kw_only=True)

    @cached_property
    def name(self) -> str:
        return name_of(self.raw)

    @cached_property
    def namespace(self) -> str:
        return namespace_of(self.raw)

    @property
    def generation(self) -> int:
        return generation_of(self.raw)

    @property
    def status(self) -> Object:
        """The status as it was last written."""
        status: Object = self.raw.get("status") or {}
        return status


O = TypeVar("O", bound=Observed)  # noqa: E741
P = TypeVar("P", bound=Plan)


class Wait(Exception):
    """Nothing can be decided yet, and nothing is written: the object is looked at again after so many seconds."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@dataclass(frozen=True, slots=True)
class Claim:
    """What an object has to carry before anything is done for it, beside its finalizer.

    The patch of the spec goes with that write, and causes none of its own.
    """

    labels: Mapping[str, str] | None = None
    spec: Object | None = None


@dataclass(frozen=True, slots=True)
class Folded:
    """What a reconcile comes to: the status to write, events, and when to look again.

    `again`        seconds after which to reconcile, also if nothing brings the object back before
    `rest`         seconds in which another look would be too early, whatever brings it back
    `annotations`  what else is said of the object, where its status has no room for it
    """

    status: Object
    events: tuple[Event, ...] = ()
    again: float | None = None
    rest: float = 0.0
    annotations: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Kind(Generic[O, P]):
    """A kind of object, as a value. Nothing of it waits or writes: `observe` reads memory, and the rest is pure.

    `api_type`          the object, typed
    `conditions`        the first dependent also says what is wrong with an object as such; None for a kind whose
                        status has none, of which an event says it
    `children`          the kinds of which it may own objects
    `finalizer`         empty for a kind whose end the garbage collector sees to
    `observe`           returns everything that a decision is based on; raises `DecodeError`, `Needs` or `Wait`
    `claim`             returns what the object has to carry; None for one that is not ours to care for
    `plan`              returns what should exist; raises `Needs`
    `fold`              returns what follows from what was observed, planned and done, on every path
    `finalize`          returns what goes with the object, or what is said of it while it has to stay. Nothing but its
                        metadata can be relied on: whatever else is wrong with an object, it can be deleted
    `writes_status`     whether the status is ours; somebody else's is left as it is
    `edit_status`       opens a status for changes
    `patience`          seconds for which a status that only adds to another may wait for the next one
    `reports_children`  whether there are events about children that come, change and go
    `event_source`      who reports events, if not the program
    `readiness_events`  yields events about an object whose status was one and is another
    `sources`           yields what an object was planned from, beside itself, for those who ask
    `doubts`            yields what may surprise about a plan, for those who ask
    """

    resource: Resource
    api_type: type[APIType]
    conditions: ConditionSet | None
    children: frozenset[Resource] = frozenset()
    finalizer: str = ""
    observe: Callable[[Object, Answers, str], O]
    claim: Callable[[O], Claim | None] = lambda observed: Claim()
    plan: Callable[[O], P]
    fold: Callable[[O, P, Outcome], Folded]
    finalize: Callable[[Object, Answers, str], Plan | Folded] = lambda raw, answers, now: Plan()
    writes_status: bool = True
    edit_status: Callable[[ConditionSet, Object, str], StatusEditor] = StatusEditor
    patience: float = 0.0
    reports_children: bool = False
    event_source: str = ""
    readiness_events: Callable[[Object, Object, Object], Iterable[Event]] = lambda owner, before, after: ()
    sources: Callable[[O, P], Iterable[Reference]] = lambda observed, planned: ()
    doubts: Callable[[O, P], Iterable[Stop]] = lambda observed, planned: ()
