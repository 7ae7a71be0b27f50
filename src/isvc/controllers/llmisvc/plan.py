"""Plans an LLMInferenceService: workload, then scheduler, then router; last, what nothing asks for goes.

The workload prunes its own, so that this goes also while the scheduler or the router is refused; theirs goes together,
because a route that cannot be changed still leads to the scheduler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from isvc.controllers.llmisvc import router, scheduler, workload
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.planned import Area, Planned, Stop
from isvc.engine.plan import Part, Plan, Retire, Want
from isvc.kube.resource import (
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from isvc.serving.thirdparty import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
)

AREAS: Final[dict[str, Callable[[Observed], Area]]] = {
    "workload": workload.plan,
    "scheduler": scheduler.plan,
    "router": router.plan,
}
CHILDREN: Final[frozenset[Resource]] = frozenset(
    {
        DEPLOYMENTS,
        LEADER_WORKER_SETS,
        SERVICES,
        SECRETS,
        SERVICE_ACCOUNTS,
        ROLES,
        ROLE_BINDINGS,
        HORIZONTAL_POD_AUTOSCALERS,
        SCALED_OBJECTS,
        RESOURCE_CLAIM_TEMPLATES,
        INFERENCE_POOLS,
        INFERENCE_POOLS_V1ALPHA2,
        HTTP_ROUTES,
    }
)
"""Every kind of which a service may own objects."""


def plan(observed: Observed) -> Planned:
    areas: dict[str, Area] = {}
    stop: Stop | None = None
    for name, planner in AREAS.items():
        areas[name] = planner(observed)
        if stop := areas[name].stop:
            break
    parts = [part for area in areas.values() for part in area.parts]
    complete = len(areas) == len(AREAS) and all(area.stop is None or area.complete for area in areas.values())
    if complete:  # only who knows all that is wanted may say that nothing else is
        answer = Retire("stopped") if observed.stopped else Want(())
        parts.append(Part("everything else", answer, CHILDREN))
    return Planned(Plan(tuple(parts)), areas, stop, complete)
