"""Plans an LLMInferenceService: workload, then scheduler, then router; last, what nothing asks for goes.

The workload prunes its own, so that this goes also while the scheduler or the router is refused; theirs goes together,
because a route that cannot be changed still leads to the scheduler.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS
from isvc.controllers.llmisvc import router, scheduler, workload
from isvc.controllers.llmisvc.area import Area
from isvc.controllers.llmisvc.observed import Combination, Observed
from isvc.controllers.llmisvc.router.plan import Router
from isvc.controllers.llmisvc.status.conditions import PRESETS_COMBINED
from isvc.controllers.llmisvc.workload.plan import Workload
from isvc.engine.plan import Hold, Part, Plan, Reference, Retire, Stop, Want
from isvc.kube.objects import Key
from isvc.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
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
        POD_DISRUPTION_BUDGETS,
        SCALED_OBJECTS,
        RESOURCE_CLAIM_TEMPLATES,
        INFERENCE_POOLS,
        INFERENCE_POOLS_V1ALPHA2,
        HTTP_ROUTES,
    }
)
"""Every kind of which a service may own objects."""


_PRESETS: Final = "correct the configuration that is named, or the service's baseRefs"


@dataclass(frozen=True, slots=True)
class Planned(Plan):
    """Areas come one after the other; one after a stop is not planned."""

    workload: Workload | None = None
    scheduler: Area | None = None
    router: Router | None = None

    @property
    def areas(self) -> tuple[Area, ...]:
        return tuple(area for area in (self.workload, self.scheduler, self.router) if area is not None)


def plan(observed: Observed) -> Planned:
    if not observed.combination.is_planned:
        return _hold_all(observed.combination)
    servers = workload.plan(observed)
    picker = scheduler.plan(observed) if servers.stop is None else None
    entrance = router.plan(observed) if picker is not None and picker.stop is None else None
    areas = [area for area in (servers, picker, entrance) if area is not None]
    stop = next((area.stop for area in areas if area.stop), None)
    parts = [part for area in areas for part in area.parts]
    if stop is not None and picker is None:
        parts.append(scheduler.hold(observed, stop))
    if stop is not None and entrance is None:
        parts.append(Part("router", stop.hold, frozenset({HTTP_ROUTES})))
    if not any(isinstance(part.answer, Hold) for part in parts):
        # Once everything is decided, what nothing asks for goes.
        answer = Retire("stopped") if observed.stopped else Want(())
        parts.append(Part("everything else", answer, CHILDREN))
    references = _references(observed)
    return Planned(tuple(parts), stop, references=references, workload=servers, scheduler=picker, router=entrance)


def _hold_all(combination: Combination) -> Planned:
    stop = Stop(
        "presets",
        PRESETS_COMBINED,
        combination.reason,
        combination.message,
        remedy=_PRESETS,
        subject="presets cannot be combined",
    )
    return Planned((Part(stop.part, stop.hold, CHILDREN),), stop)


def _references(observed: Observed) -> frozenset[Reference]:
    """Returns what else is looked for. Configurations that the status has already lead to the service by an index."""
    config_map, places = observed.merged.scheduler_config_map, (observed.namespace, observed.system_namespace)
    reported = {each.get("name") for each in observed.status.get("appliedConfigs") or ()}
    new = [*(each.name for each in observed.merged.applied if each.name not in reported), *observed.merged.lacking]
    configs = {(LLM_INFERENCE_SERVICE_CONFIGS, Key(place, name)) for name in new for place in places}
    return observed.network.references | configs | ({(CONFIG_MAPS, config_map)} if config_map else set())
