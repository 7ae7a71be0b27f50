"""What planning an LLMInferenceService comes to: children, removals, and what the status has to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from isvc.controllers.llmisvc.observed import Observed
from isvc.engine.events import Event
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Part, Plan
from isvc.kube.objects import Object
from isvc.kube.resource import Resource


class Stop(NamedTuple):
    """Why planning or applying an area came to a halt: this condition turns False, and later areas wait."""

    condition: str
    reason: str
    message: str


class OnRefusal(NamedTuple):
    """What is said when the API server refuses a child: this condition turns False, and the message says in what."""

    condition: str
    reason: str
    context: str = ""


class Shared(NamedTuple):
    """An object without an owner reference, which the garbage collector never takes: removed by name."""

    resource: Resource
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Area:
    """One area of a service: its workload, its scheduler or its router.

    `parts`     children in the order in which they are created; what is planned when it stops is still created
    `stop`      why there are not all of them
    `removals`  unowned objects that must not exist
    `refusals`  by the name of a part, what is said when the API server refuses a child of it
    `again`     seconds after which to look again, such as when a certificate is to be renewed
    `facts`     whatever the area's own `report` wants to know again
    `complete`  whether all parts are there although it stops, so that what nothing asks for can go
    """

    parts: tuple[Part, ...] = ()
    stop: Stop | None = None
    removals: tuple[Shared, ...] = ()
    events: tuple[Event, ...] = ()
    refusals: Mapping[str, OnRefusal] = field(default_factory=dict)
    again: float | None = None
    facts: object = None
    complete: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """`areas` are the ones that were planned, by name and in order: workload, scheduler, router.

    `complete` says that the plan has all that is wanted, so that whatever else there is can go.
    """

    plan: Plan = field(default_factory=Plan)
    areas: Mapping[str, Area] = field(default_factory=dict)
    stop: Stop | None = None
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Applied:
    """The service's children as the API server has them after the plan was applied."""

    observed: Observed
    outcome: Outcome = field(default_factory=Outcome)

    def live(self, resource: Resource, name: str) -> Object | None:
        return self.outcome.live(resource, name) or self.observed.live.get((resource, name))

    def is_refused(self, area: Area) -> bool:
        """Whether the API server refused a child of the area."""
        refusal = self.outcome.refusal
        return refusal is not None and any(part.name == refusal.part for part in area.parts)
