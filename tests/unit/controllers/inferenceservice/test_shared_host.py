"""Two services that the domain template gives one host: the younger one names the other, for as long as that lasts."""

from __future__ import annotations

from isvc.api.resources import INFERENCE_SERVICES
from isvc.controllers.inferenceservice.shared_host import CONDITION
from isvc.insight.diagnosis.gather import examine
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.rendering.shipped import with_section
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.conditions import find, is_true
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS
from isvc.programs.options import Options
from isvc.serving.config import CONFIG_MAP

MODEL = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}


def service(name: str, namespace: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return INFERENCE_SERVICES.typed({"metadata": metadata, "spec": {"predictor": {"model": MODEL}}})


async def serving(*services: Object) -> Simulation:
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    config = cluster.simulation.objects.get(CONFIG_MAPS, CONFIG_MAP, "kserve") or {}
    cluster.simulation.seed([(CONFIG_MAPS, with_section(config, "ingress", pathTemplate=""))])
    for each in services:
        await cluster.simulation.apply(INFERENCE_SERVICES, each)
        cluster.simulation.clock.advance(1)
    await cluster.simulation.settle_ready()
    return cluster.simulation


def conditions(simulation: Simulation, name: str, namespace: str) -> list[Object]:
    stored = simulation.objects.get(INFERENCE_SERVICES, name, namespace)
    assert stored is not None
    assert is_true(stored["status"]["conditions"], "Ready")
    found: list[Object] = stored["status"]["conditions"]
    return found


async def test_the_younger_names_the_older():
    simulation = await serving(service("a-b", "c"), service("a", "b-c"))
    assert find(conditions(simulation, "a-b", "c"), CONDITION) is None
    condition = find(conditions(simulation, "a", "b-c"), CONDITION) or {}
    assert (condition["status"], condition["severity"], condition["reason"]) == ("False", "Info", "HostConflict")
    assert "InferenceService c/a-b" in condition["message"]
    assert "a-b-c.example.com" in condition["message"]


async def test_it_says_so_no_longer_when_the_other_is_gone():
    simulation = await serving(service("a-b", "c"), service("a", "b-c"))
    await simulation.client.delete(INFERENCE_SERVICES, "a-b", "c")
    await simulation.settle_ready()
    assert find(conditions(simulation, "a", "b-c"), CONDITION) is None


async def test_services_of_different_hosts_say_nothing():
    simulation = await serving(service("a", "b"), service("a", "c"))
    assert all(find(conditions(simulation, "a", each), CONDITION) is None for each in ("b", "c"))


async def test_explain_names_the_other():
    simulation = await serving(service("a-b", "c"), service("a", "b-c"))
    stored = simulation.objects.get(INFERENCE_SERVICES, "a", "b-c")
    assert stored is not None
    findings = await examine(simulation.client, stored)
    assert any("c/a-b" in finding.message for finding in findings)
