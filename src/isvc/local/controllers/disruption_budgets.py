"""PodDisruptionBudgets: how many pods may be evicted now, which the API server takes off with each eviction.

The rules are kube-controller-manager's. What pods should be there is what their controllers want, unless `minAvailable`
is a number: then it is those that are. A pod whose eviction was allowed is not counted any more, though it may take a
while until its deletion is heard of; if it is still there after two minutes, it stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from isvc.kube.conditions import FALSE, TRUE, conditions_of, stamp
from isvc.kube.errors import NotFound
from isvc.kube.objects import (
    Key,
    Object,
    dig,
    generation_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from isvc.kube.owners import controller_of
from isvc.kube.pods import replicas_of
from isvc.kube.resource import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, STATEFUL_SETS
from isvc.kube.selectors import LabelSelector
from isvc.kube.timestamps import parse_timestamp, timestamp
from isvc.local.controllers.pods import is_ready
from isvc.local.controllers.rollout import share
from isvc.local.controllers.selection import LABELS, select_pods
from isvc.serving.thirdparty import LEADER_WORKER_SETS
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Result, Watch, changed
from isvc.toolkit.reads import Read

_GOES_WITHIN: Final = timedelta(minutes=2)
_SCALED: Final = {each.kind: each for each in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, LEADER_WORKER_SETS)}


def controller(context: Context) -> Controller:
    def selecting(pod: Object) -> Iterable[Key]:
        budgets = context.cache.list(POD_DISRUPTION_BUDGETS, namespace_of(pod))
        return [Key.of(budget) for budget in budgets if _selects(budget, pod)]

    def beside(workload: Object) -> Iterable[Key]:
        return context.cache.all_keys(POD_DISRUPTION_BUDGETS, namespace_of(workload))

    watches = [
        Watch(POD_DISRUPTION_BUDGETS),
        Watch(PODS, to=selecting, when=changed(lambda pod: (labels_of(pod), is_ready(pod), is_being_deleted(pod)))),
        *(Watch(kind, to=beside, when=changed(replicas_of)) for kind in _SCALED.values()),
    ]
    reads = [Read(PODS, indexers=LABELS)]
    return Controller("disruption", Budgets(context).reconcile, watches, clock=context.clock, reads=reads)


class Budgets:
    def __init__(self, context: Context) -> None:
        self._context = context

    async def reconcile(self, key: Key) -> Result | None:
        budget = self._context.find(POD_DISRUPTION_BUDGETS, key)
        if budget is None:
            return None
        selector = dig(budget, "spec", "selector")
        pods = select_pods(self._context.cache, key.namespace, selector) if selector is not None else []
        now = self._context.clock.now()
        status = budget_status(budget, pods, self._wanted(pods), now)
        if status != budget.get("status"):
            # By its revision: an eviction may have been allowed since.
            metadata = {"resourceVersion": resource_version_of(budget)}
            before = dict.fromkeys(dig(budget, "status", "disruptedPods") or ())
            patch = {**status, "disruptedPods": before | status.get("disruptedPods", {}) or None}
            try:
                await self._context.patch(
                    POD_DISRUPTION_BUDGETS, budget, {"metadata": metadata, "status": patch}, subresource="status"
                )
            except NotFound:
                return None
        return Result(requeue_after=_GOES_WITHIN.total_seconds()) if "disruptedPods" in status else None

    def _wanted(self, pods: Sequence[Object]) -> int:
        """Returns how many replicas those want who control the pods; pods that nobody scales do not count."""
        found: dict[str, int] = {}
        for pod in pods:
            scaled = self._scaled(pod)
            if scaled is not None:
                found[uid_of(scaled)] = replicas_of(scaled)
        return sum(found.values())

    def _scaled(self, obj: Object) -> Object | None:
        """Returns who is scaled for an object: its controller, or the one of that."""
        owner = controller_of(obj)
        resource = _SCALED.get(owner["kind"]) if owner is not None else None
        if owner is None or resource is None:
            return None
        found = self._context.cache.get(resource, owner["name"], namespace_of(obj))
        if found is None or uid_of(found) != owner["uid"]:
            return None
        return self._scaled(found) or found


def _selects(budget: Object, pod: Object) -> bool:
    selector = dig(budget, "spec", "selector")
    return selector is not None and LabelSelector.from_spec(selector).matches(labels_of(pod))


def budget_status(budget: Object, pods: Sequence[Object], wanted: int, now: datetime) -> Object:
    """Returns the status of a budget for these pods, of which their controllers want so many."""
    leaving = _leaving(dig(budget, "status", "disruptedPods") or {}, pods, now)
    healthy = sum(is_ready(pod) and not is_being_deleted(pod) and name_of(pod) not in leaving for pod in pods)
    expected, needed = _expected_and_needed(budget["spec"], len(pods), wanted)
    allowed = max(0, healthy - needed) if expected else 0
    condition = {
        "type": "DisruptionAllowed",
        "status": TRUE if allowed else FALSE,
        "observedGeneration": generation_of(budget),
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
    return {
        "observedGeneration": generation_of(budget),
        **({"disruptedPods": leaving} if leaving else {}),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": needed,
        "expectedPods": expected,
        "conditions": [stamp(condition, conditions_of(budget), timestamp(now))],
    }


def _leaving(disrupted: Mapping[str, str], pods: Sequence[Object], now: datetime) -> dict[str, str]:
    """Returns the pods whose eviction was allowed, with when, as long as they are expected to go."""
    there = {name_of(pod) for pod in pods if not is_being_deleted(pod)}
    recent = now - _GOES_WITHIN
    return {name: when for name, when in disrupted.items() if name in there and parse_timestamp(when) > recent}


def _expected_and_needed(spec: Object, there: int, wanted: int) -> tuple[int, int]:
    most, least = spec.get("maxUnavailable"), spec.get("minAvailable")
    if most is not None:
        return wanted, max(0, wanted - share(most, wanted, up=True))
    if isinstance(least, str):
        return wanted, share(least, wanted, up=True)
    return (there, least) if least is not None else (0, 0)
