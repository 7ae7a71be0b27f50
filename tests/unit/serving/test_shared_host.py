"""Services and graphs that the domain template gives one host: the younger names the other, while that lasts."""

from __future__ import annotations

import pytest

from isvc.api.resources import INFERENCE_GRAPHS, INFERENCE_SERVICES
from isvc.insight.diagnosis.gather import examine
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.rendering.shipped import with_section
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.conditions import find, is_true
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs.options import Options
from isvc.serving.config import CONFIG_MAP
from isvc.serving.shared_host import CONDITION

MODEL = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}


def service(name: str, namespace: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return INFERENCE_SERVICES.typed({"metadata": metadata, "spec": {"predictor": {"model": MODEL}}})


def graph(name: str, namespace: str) -> Object:
    step = {"routerType": "Sequence", "steps": [{"serviceUrl": "http://models.example.com/predict"}]}
    return INFERENCE_GRAPHS.typed(
        {"metadata": {"name": name, "namespace": namespace}, "spec": {"nodes": {"root": step}}}
    )


MAKERS = {"service": (INFERENCE_SERVICES, service), "graph": (INFERENCE_GRAPHS, graph)}


async def serving(*objects: Object) -> Simulation:
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    config = cluster.simulation.objects.get(CONFIG_MAPS, CONFIG_MAP, "kserve") or {}
    cluster.simulation.seed([(CONFIG_MAPS, with_section(config, "ingress", pathTemplate=""))])
    for each in objects:
        await cluster.simulation.apply(_resource(each), each)
        cluster.simulation.clock.advance(1)
    await cluster.simulation.settle_ready()
    return cluster.simulation


def _resource(obj: Object) -> Resource:
    return INFERENCE_GRAPHS if obj["kind"] == INFERENCE_GRAPHS.kind else INFERENCE_SERVICES


def conditions(
    simulation: Simulation, name: str, namespace: str, resource: Resource = INFERENCE_SERVICES
) -> list[Object]:
    stored = simulation.objects.get(resource, name, namespace)
    assert stored is not None
    assert is_true(stored["status"]["conditions"], "Ready")
    found: list[Object] = stored["status"]["conditions"]
    return found


OF_ONE_HOST = pytest.mark.parametrize(
    ("older", "younger"), [("service", "service"), ("service", "graph"), ("graph", "service"), ("graph", "graph")]
)


@OF_ONE_HOST
async def test_the_younger_names_the_older(older: str, younger: str):
    (elders, make_elder), (kind, make) = MAKERS[older], MAKERS[younger]
    simulation = await serving(make_elder("a-b", "c"), make("a", "b-c"))
    assert find(conditions(simulation, "a-b", "c", elders), CONDITION) is None
    condition = find(conditions(simulation, "a", "b-c", kind), CONDITION) or {}
    assert (condition["status"], condition["severity"], condition["reason"]) == ("False", "Info", "HostConflict")
    assert f"{elders.kind} c/a-b" in condition["message"]
    assert "a-b-c.example.com" in condition["message"]


@OF_ONE_HOST
async def test_it_says_so_no_longer_when_the_other_is_gone(older: str, younger: str):
    (elders, make_elder), (kind, make) = MAKERS[older], MAKERS[younger]
    simulation = await serving(make_elder("a-b", "c"), make("a", "b-c"))
    await simulation.client.delete(elders, "a-b", "c")
    await simulation.settle_ready()
    assert find(conditions(simulation, "a", "b-c", kind), CONDITION) is None


@pytest.mark.parametrize("younger", MAKERS)
async def test_the_host_of_a_component_is_one_that_others_may_have(younger: str):
    kind, make = MAKERS[younger]
    simulation = await serving(service("a", "b"), make("a", "predictor-b"))
    condition = find(conditions(simulation, "a", "predictor-b", kind), CONDITION) or {}
    assert "InferenceService b/a, which is older, has the address a-predictor-b.example.com" in condition["message"]
    simulation = await serving(make("a", "predictor-b"), service("a", "b"))
    condition = find(conditions(simulation, "a", "b"), CONDITION) or {}
    assert f"{kind.kind} predictor-b/a, which is older" in condition["message"]


async def test_services_of_different_hosts_say_nothing():
    simulation = await serving(service("a", "b"), service("a", "c"))
    assert all(find(conditions(simulation, "a", each), CONDITION) is None for each in ("b", "c"))


@pytest.mark.parametrize("younger", MAKERS)
async def test_explain_names_the_other(younger: str):
    kind, make = MAKERS[younger]
    simulation = await serving(service("a-b", "c"), make("a", "b-c"))
    stored = simulation.objects.get(kind, "a", "b-c")
    assert stored is not None
    findings = await examine(simulation.client, stored)
    assert any("InferenceService c/a-b" in finding.message for finding in findings)
