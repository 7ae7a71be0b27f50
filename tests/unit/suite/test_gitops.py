"""The health check for Argo CD that the documentation has, run by Lua 5.1 over what the controllers report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime

from isvc.api.annotations import STOP
from isvc.api.kinds import KINDS, KindRow
from isvc.api.kinds.crds import crd
from isvc.api.resources import INFERENCE_SERVICES, LOCAL_MODEL_CACHES, LOCAL_MODEL_NODE_GROUPS, MODEL_CACHES
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.objects import Object, deep_copy
from isvc.programs.options import Options

PAGE = (Path(__file__).parents[3] / "docs" / "gitops.md").read_text()
MODEL = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}


@pytest.fixture(scope="module")
def health() -> Callable[[Object], tuple[str, str]]:
    """What the check says of an object, as Argo CD calls it: a chunk with the object as a global."""
    block = PAGE.split("```yaml\n")[1].split("```")[0]
    customizations = yaml.safe_load(yaml.safe_load(block)["data"]["resource.customizations"])
    [check] = customizations.values()
    lua: Any = LuaRuntime()

    def run(obj: Object) -> tuple[str, str]:
        lua.globals().obj = lua.table_from(obj, recursive=True)
        found = dict(lua.execute(check["health.lua"]))
        return found["status"], found.get("message", "")

    return run


async def serving(model: Object, **annotations: str) -> tuple[Simulation, Object]:
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    metadata = {"name": "iris", "namespace": "models", "annotations": annotations}
    service = INFERENCE_SERVICES.typed({"metadata": metadata, "spec": {"predictor": {"model": model}}})
    await cluster.simulation.apply(INFERENCE_SERVICES, service)
    return cluster.simulation, stored(cluster.simulation)


def stored(simulation: Simulation) -> Object:
    found = simulation.objects.get(INFERENCE_SERVICES, "iris", "models")
    assert found is not None
    return deep_copy(found)


async def test_a_service_on_its_way(health):
    simulation, new = await serving(MODEL)
    assert health(new) == ("Progressing", "waiting for the controller")
    await simulation.settle()
    assert health(stored(simulation))[0] == "Progressing"
    await simulation.settle_ready()
    ready = stored(simulation)
    assert health(ready)[0] == "Healthy"
    ready["metadata"]["generation"] += 1
    assert health(ready) == ("Progressing", "the controller has not seen the last edit yet")


async def test_a_service_that_nothing_can_serve(health):
    simulation, _ = await serving({**MODEL, "modelFormat": {"name": "unheard-of"}})
    await simulation.settle_ready()
    status, message = health(stored(simulation))
    assert status == "Degraded"
    assert "unheard-of" in message


async def test_a_service_that_is_stopped(health):
    simulation, _ = await serving(MODEL, **{STOP: "true"})
    await simulation.settle_ready()
    assert health(stored(simulation))[0] == "Suspended"


def test_every_kind_that_reports_no_conditions_can_be_healthy(health):
    """What has neither would be progressing for good, and so would the application that it is a part of."""
    without = [row.resource for row in KINDS if "conditions" not in status_fields(row)]
    assert LOCAL_MODEL_NODE_GROUPS in without
    for resource in without:
        there = {"copies": {"total": 2, "available": 2}} if resource in MODEL_CACHES else {}
        assert health(resource.typed({"metadata": {"name": "own"}, "status": there}))[0] == "Healthy", resource


def status_fields(row: KindRow) -> Object:
    [schema] = [
        each["schema"]["openAPIV3Schema"] for each in crd(row, described=False)["spec"]["versions"] if each["storage"]
    ]
    return schema["properties"].get("status", {}).get("properties", {})


@pytest.mark.parametrize(
    ("copies", "expected"),
    [
        ({"total": 2, "available": 1}, ("Progressing", "1 of 2 nodes have the model")),
        ({"total": 2, "failed": 1}, ("Degraded", "0 of 2 nodes have the model, 1 failed to download it")),
    ],
)
def test_a_cache_that_is_not_on_all_nodes(health, copies: Object, expected: tuple[str, str]):
    assert health(LOCAL_MODEL_CACHES.typed({"metadata": {"name": "iris"}, "status": {"copies": copies}})) == expected


def test_a_cache_that_no_controller_has_seen(health):
    assert health(LOCAL_MODEL_CACHES.typed({"metadata": {"name": "iris"}}))[0] == "Progressing"
