"""Every condition that is not True says why, in every recorded state, and saying so again changes nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.conformance.recorded import Memory, State, states, unexplained
from tests.manual_clock import ManualClock
from tests.recordings import FOLDER

from isvc.api.annotations import DISABLE_AUTO_UPDATE
from isvc.api.resources import INFERENCE_GRAPHS, INFERENCE_SERVICES
from isvc.controllers.inferencegraph import kind as inferencegraph
from isvc.controllers.inferenceservice import kind as inferenceservice
from isvc.engine.gatherer import Gatherer
from isvc.engine.kind import Kind
from isvc.engine.outcome import Outcome, Result, Unchanged
from isvc.engine.plan import ChildKey
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, annotations_of, name_of, namespace_of
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import KNATIVE_SERVICES

NOW = "2026-01-01T00:00:00Z"
STATES = [state for state in states("*") if not state.profile.startswith("llmisvc")]
pytestmark = pytest.mark.skipif(not STATES, reason=f"no recorded cases in {FOLDER}")


class Recorded:
    """What has no informer, read from the recorded state."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        if (found := self._memory.get(resource, name, namespace)) is None:
            raise NotFound(name)
        return found

    async def server_version(self) -> tuple[str, str]:
        return "1", "35"


async def folded(kind: Kind, memory: Memory, raw: Object, live: dict[ChildKey, Result]) -> Object:
    """The status that a kind would write, with what has no informer read from the recorded state."""
    client: Any = Recorded(memory)
    gatherer = Gatherer(client, ManualClock())
    answers = gatherer.answers()
    observed = await gatherer.gather(partial(kind.observe, raw, answers, NOW), answers)
    planned = await gatherer.gather(partial(kind.plan, observed), answers)
    status: Object = kind.fold(observed, planned, Outcome(live, namespace=namespace_of(raw))).status
    return status


@pytest.mark.parametrize("state", STATES, ids=str)
async def test_services_say_why_they_are_not_ready(state: State) -> None:
    memory = Memory(state)
    kind = inferenceservice.make_kind(memory, Environment())
    for service in memory.list(INFERENCE_SERVICES):
        status = await folded(kind, memory, service, {})
        if is_pinned(service):
            continue
        assert unexplained(status) == []
        assert await folded(kind, memory, {**service, "status": status}, {}) == status


def is_pinned(service: Object) -> bool:
    return annotations_of(service).get(DISABLE_AUTO_UPDATE) == "true"


@pytest.mark.parametrize("state", [state for state in STATES if "graph" in state.case], ids=str)
async def test_graphs_say_why_they_are_not_ready(state: State) -> None:
    memory = Memory(state)
    kind = inferencegraph.make_kind(memory, Environment())
    for graph in memory.list(INFERENCE_GRAPHS):
        workloads: dict[ChildKey, Result] = {
            ChildKey(resource, name_of(child), namespace_of(child)): Unchanged(child)
            for resource in (DEPLOYMENTS, KNATIVE_SERVICES)
            for child in memory.list(resource)
        }
        assert unexplained(await folded(kind, memory, graph, workloads)) == []
