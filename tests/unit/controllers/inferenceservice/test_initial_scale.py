"""Whether a Knative Service may start with no pods is asked when somebody wants that, and then afresh."""

from __future__ import annotations

import pytest

from isvc.api.resources import INFERENCE_SERVICES
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.objects import Object, dig
from isvc.kube.resource import CONFIG_MAPS
from isvc.programs.options import Options
from isvc.serving.knative_settings import AUTOSCALER_CONFIG
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.toolkit.client.transport import Call

INITIAL_SCALE = "autoscaling.knative.dev/initial-scale"


def settings(version: str, **data: str) -> Object:
    metadata = {"name": AUTOSCALER_CONFIG, "namespace": "knative-serving", "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def knative() -> Simulation:
    cluster = Cluster(Options())
    cluster.install([], [], mode="Knative")
    cluster.simulation.seed([(CONFIG_MAPS, settings("1"))])
    return cluster.simulation


async def initial_scale(simulation: Simulation, name: str, wanted: str) -> str | None:
    service = {
        "apiVersion": INFERENCE_SERVICES.api_version,
        "kind": INFERENCE_SERVICES.kind,
        "metadata": {"name": name, "namespace": "models", "annotations": {INITIAL_SCALE: wanted}},
        "spec": {"predictor": {"containers": [{"name": "kserve-container", "image": "server:1"}]}},
    }
    await simulation.apply(INFERENCE_SERVICES, service)
    await simulation.settle()
    made = simulation.server.written[KNATIVE_SERVICES, "models", f"{name}-predictor"]
    found: str | None = dig(made, "spec", "template", "metadata", "annotations", INITIAL_SCALE)
    return found


async def test_a_service_that_comes_right_after_knative_was_told_may_start_with_no_pods() -> None:
    simulation = knative()
    assert await initial_scale(simulation, "before", "0") is None
    simulation.seed([(CONFIG_MAPS, settings("2", **{"allow-zero-initial-scale": "true"}))])
    assert await initial_scale(simulation, "after", "0") == "0"


async def test_nobody_asks_for_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation, asked = knative(), list[str]()
    exchange = simulation.server.exchange

    async def listen(call: Call) -> bytes:
        asked.append(call.target)
        return await exchange(call)

    monkeypatch.setattr(simulation.server, "exchange", listen)
    assert await initial_scale(simulation, "three", "3") == "3"
    assert asked
    assert not [path for path in asked if path.endswith(AUTOSCALER_CONFIG)]
