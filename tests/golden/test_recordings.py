"""What the controllers make of our own cases, step by step, is what was recorded.

The cases cover what a bare clone would otherwise never build: graphs, trained models, routes of the Gateway API. After
a deliberate change `pytest tests/golden/test_recordings.py --record` writes the recordings anew; read the diff.
"""

from __future__ import annotations

import pytest
from tests.cluster.programs import controllers
from tests.definitions import PATIENCE
from tests.golden.player import Player, case_names, read_case, read_recording, write_recording
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
from isvc.kube.objects import Object, name_of
from isvc.programs import isvc_manager, llmisvc_manager
from isvc.toolkit.client import Client, kubeconfig

RESTING = 40  # looks without a change, while recording


@pytest.mark.parametrize("name", case_names())
async def test_recorded(cluster, client, namespace, name: str, request: pytest.FixtureRequest) -> None:
    case, player = read_case(name), Player(client, namespace)
    await player.set_up(case)
    expected = None if request.config.getoption("--record") else read_recording(name)
    states: list[Object] = []
    program = llmisvc_manager.PROGRAM if case.get("llm") else isvc_manager.PROGRAM
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, controllers(own, program, namespace):
        for number, step in enumerate(case["steps"]):
            await player.play(step)
            wanted = expected[number]["objects"] if expected else None
            found = await _settled(player, ready=step.get("ready", False), wanted=wanted)
            states.append({"step": step["step"], "objects": found})
        await _remove(client, namespace)
    if expected is None:
        write_recording(name, states)
    else:
        assert states == expected


async def _settled(player: Player, *, ready: bool, wanted: Object | None) -> Object:
    """What is there once it is what is wanted; while recording, once nothing has changed for a while."""
    seen: list[Object] = []

    async def rests() -> bool:
        if ready:
            await player.make_ready()
        seen.append(await player.picture())
        if wanted is not None:
            return seen[-1] == wanted
        return len(seen) > RESTING and all(each == seen[-1] for each in seen[-RESTING:])

    try:
        await until(rests, "it rests", within=PATIENCE, every=0.1)
    except AssertionError:
        assert seen[-1] == wanted  # shows where they differ
    return seen[-1]


async def _remove(client: Client, namespace: str) -> None:
    """Leave nothing behind that another test's controllers would look after."""
    services = (INFERENCE_SERVICES, LLM_INFERENCE_SERVICES)
    for resource in services:
        for service in (await client.list(resource, namespace)).items:
            await client.delete(resource, name_of(service), namespace)

    async def gone() -> bool:
        return not any([(await client.list(resource, namespace)).items for resource in services])

    await until(gone, "the services to go")


def test_what_the_cases_cover() -> None:
    """A clone without other recordings builds all of these."""
    kinds = {
        key.partition("/")[0] for name in case_names() for state in read_recording(name) for key in state["objects"]
    }
    assert kinds >= {
        "InferenceGraph.serving.kserve.io",
        "TrainedModel.serving.kserve.io",
        "HTTPRoute.gateway.networking.k8s.io",
        "VirtualService.networking.istio.io",
        "Service.serving.knative.dev",
        "Ingress.networking.k8s.io",
        "HorizontalPodAutoscaler.autoscaling",
        "Deployment.apps",
        "ConfigMap",
    }
