"""Areas of an LLMInferenceService: workload, scheduler and router are planned, and reported on, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from isvc.controllers.llmisvc.observed import Observed
from isvc.engine.events import Event
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Part, Stop
from isvc.kube.objects import Object
from isvc.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Area:
    """One area of a service: its workload, its scheduler or its router.

    `parts`     children in the order in which they are created; what is planned when it stops is still created
    `stop`      why there are not all of them
    `refusals`  by the name of a part, what is said when the API server refuses a child of it: the message goes before
                what the API server says
    `again`     seconds after which to look again, such as when a certificate is to be renewed
    """

    parts: tuple[Part, ...] = ()
    stop: Stop | None = None
    events: tuple[Event, ...] = ()
    refusals: Mapping[str, Stop] = field(default_factory=dict)
    again: float | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The service's children as the API server has them after the plan was applied."""

    observed: Observed
    outcome: Outcome = field(default_factory=Outcome)

    def live(self, resource: Resource, name: str) -> Object | None:
        return self.outcome.live(resource, name) or self.observed.live.get((resource, name))

    def is_refused(self, area: Area) -> bool:
        """Returns whether the API server refused a child of the area."""
        refusal = self.outcome.refusal
        return refusal is not None and any(part.name == refusal.part for part in area.parts)
