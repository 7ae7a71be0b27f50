"""The status of a cache: how far each node is, how many copies there are, and which services use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from isvc.api.localmodel import NODE_DOWNLOADED, NODE_FAILED, NODE_NOT_READY, NODE_PENDING, NODE_STATE_OF
from isvc.controllers.localmodel.observe import Observed
from isvc.controllers.localmodel.plan import doubts
from isvc.engine.events import WARNING, Event
from isvc.engine.kind import Folded
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Plan
from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.timestamps import seconds_between

NAMESPACES_APPEAR: Final = 20.0  # seconds in which a refusal is no news: a cache often comes with its namespaces


def fold(observed: Observed, planned: Plan, outcome: Outcome) -> Folded:
    nodes = _node_states(observed, planned)
    states = list(nodes.values())
    counts = {"total": len(states), "available": states.count(NODE_DOWNLOADED), "failed": states.count(NODE_FAILED)}
    status = observed.status | {"nodeStatus": nodes, "copies": {name: count for name, count in counts.items() if count}}
    if not observed.config.disable_volume_management:
        status["inferenceServices"] = _references(observed.services)
        status["llmInferenceServices"] = _references(observed.llm_services)
    filled = {field: value for field, value in status.items() if value not in ({}, [], None)}
    return Folded(filled, tuple(_warnings(observed, planned, outcome)))


def _node_states(observed: Observed, planned: Plan) -> dict[str, str]:
    """Returns how far each node of the groups is; while they are not all known, each node whose list has it.

    Of a node that is not ready the last that is known is kept: it comes back with what is on its disk.
    """
    before = observed.status.get("nodeStatus") or {}
    nodes = observed.nodes if planned.stop is None else dict.fromkeys(sorted(observed.entered), True)
    return {
        node: _state_of(observed, node) if is_ready else before.get(node, NODE_NOT_READY)
        for node, is_ready in sorted(nodes.items())
    }


def _state_of(observed: Observed, node: str) -> str:
    return NODE_STATE_OF.get(observed.states.get(node, ""), NODE_PENDING)


def _references(services: Iterable[Object]) -> list[Object]:
    return [{"name": name_of(service), "namespace": namespace_of(service)} for service in services]


def _age(observed: Observed) -> float:
    """Returns the seconds since the cache was created."""
    created = observed.raw["metadata"].get("creationTimestamp") or observed.now
    return seconds_between(created, observed.now)


def _warnings(observed: Observed, planned: Plan, outcome: Outcome) -> Iterator[Event]:
    """Yields what KServe's CRD has no field for."""
    if planned.stop is not None:
        yield Event(WARNING, planned.stop.reason, f"{planned.stop.message}: {planned.stop.remedy}")
    if outcome.refusal is not None and _age(observed) > NAMESPACES_APPEAR:
        yield Event(WARNING, "ReconcileFailed", f"{outcome.refusal.part}: {outcome.refusal.result.message}")
    for doubt in doubts(observed, planned):
        yield Event(WARNING, doubt.reason, f"{doubt.message}; {doubt.remedy}")
