"""Every condition that is not True says why, in every recorded state, and saying so again changes nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.golden.recorded import Memory, State, states, unexplained
from tests.manual_clock import ManualClock
from tests.recordings import FOLDER

from isvc.api.modes import DeploymentMode
from isvc.api.resources import INFERENCE_GRAPHS, INFERENCE_SERVICES
from isvc.controllers.inferencegraph.kind import inference_graphs
from isvc.controllers.inferenceservice.observe import Gatherer as ServiceGatherer
from isvc.controllers.inferenceservice.observe import Observer
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.status.fold import fold, unplanned
from isvc.engine.gatherer import Gatherer
from isvc.engine.outcome import Outcome, Unchanged
from isvc.engine.plan import ChildKey
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, name_of, namespace_of
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


class Settings:
    """Knative's own settings, as they are without any."""

    async def zero_initial_scale(self) -> bool:
        return False

    async def domains(self) -> list[str]:
        return []


@pytest.mark.parametrize("state", STATES, ids=str)
async def test_services_say_why_they_are_not_ready(state: State) -> None:
    memory = Memory(state)
    observer = Observer(memory, "kserve")
    for service in memory.list(INFERENCE_SERVICES):
        status = await folded(observer, memory, service)
        assert unexplained(status) == []
        assert await folded(observer, memory, {**service, "status": status}) == status


async def folded(observer: Observer, memory: Memory, service: Object) -> Object:
    observed = observer.observe(service, observer.configuration(), NOW)
    if observed.mode is DeploymentMode.MODEL_MESH:
        return unplanned(observed)
    client: Any = Recorded(memory)
    settings: Any = Settings()
    observed, planned = await ServiceGatherer(client, settings).gather(observed, plan)
    live = {ChildKey(*key): Unchanged(child) for key, child in observed.live.items()}
    return fold(observed, planned, Outcome(dict(live)))


@pytest.mark.parametrize("state", [state for state in STATES if "graph" in state.case], ids=str)
async def test_graphs_say_why_they_are_not_ready(state: State) -> None:
    memory = Memory(state)
    kind = inference_graphs(memory, Environment())
    client: Any = Recorded(memory)
    gatherer = Gatherer(client, ManualClock())
    for graph in memory.list(INFERENCE_GRAPHS):
        answers = gatherer.answers()
        observed = await gatherer.gather(partial(kind.observe, graph, answers, NOW), answers)
        planned = await gatherer.gather(partial(kind.plan, observed), answers)
        workloads = {
            ChildKey(resource, name_of(child), namespace_of(child)): Unchanged(child)
            for resource in (DEPLOYMENTS, KNATIVE_SERVICES)
            for child in memory.list(resource)
        }
        folded = kind.fold(observed, planned, Outcome(dict(workloads), namespace=namespace_of(graph)))
        assert unexplained(folded.status) == []
