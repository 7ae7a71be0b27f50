"""What no graph can be made of, and what a cluster does not allow, is said in its condition: it is no fault of ours."""

from __future__ import annotations

import pytest

from isvc.api.resources import INFERENCE_GRAPHS
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.rendering.shipped import with_section
from isvc.insight.simulation.server import MemoryServer
from isvc.kube.conditions import condition_of
from isvc.kube.errors import Forbidden
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS
from isvc.programs.options import Options
from isvc.serving.config import CONFIG_MAP
from isvc.toolkit.client.transport import Call

STEPS = {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://models.example.com/predict"}]}}


@pytest.mark.parametrize(
    ("metadata", "domain_template", "fault"),
    [
        ({"name": "g" * 61}, "{{ .Name }}-{{ .Namespace }}.example.com", "must be no more than 63 characters"),
        ({"name": "g"}, "{{ .Nonsense }}", "error rendering the domain template"),
        (
            {"name": "g", "annotations": {"serving.kserve.io/autoscalerClass": "mine"}},
            "{{ .Name }}.example.com",
            "unknown autoscaler class type: mine",
        ),
    ],
)
async def test_it_is_said_and_nothing_is_made(metadata: dict[str, object], domain_template: str, fault: str) -> None:
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    simulation = cluster.simulation
    config = simulation.objects.get(CONFIG_MAPS, CONFIG_MAP, "kserve") or {}
    simulation.seed([(CONFIG_MAPS, with_section(config, "ingress", pathTemplate="", domainTemplate=domain_template))])
    graph = INFERENCE_GRAPHS.typed({"metadata": {"namespace": "ns", **metadata}, "spec": {"nodes": STEPS}})
    await simulation.apply(INFERENCE_GRAPHS, graph)
    await simulation.settle_ready()
    assert not simulation.crashes
    (stored,) = simulation.objects.list(INFERENCE_GRAPHS)
    ready = condition_of(stored, "Ready") or {}
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert fault in ready["message"]
    assert not list(simulation.objects.list(DEPLOYMENTS))


class Strict(MemoryServer):
    """A cluster with a policy against Deployments."""

    strict = True

    async def exchange(self, call: Call) -> bytes:
        if self.strict and call.method != "GET" and "/deployments" in call.target:
            raise Forbidden("no Deployments here")
        return await super().exchange(call)


async def test_what_the_cluster_refuses_is_said_until_it_no_longer_does() -> None:
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    simulation = cluster.simulation
    server = simulation.server
    server.__class__ = Strict
    assert isinstance(server, Strict)
    graph = INFERENCE_GRAPHS.typed({"metadata": {"name": "g", "namespace": "ns"}, "spec": {"nodes": STEPS}})

    async def readiness() -> tuple[str, str, int]:
        await simulation.settle_ready()
        (stored,) = simulation.objects.list(INFERENCE_GRAPHS)
        ready = condition_of(stored, "Ready") or {}
        return ready["status"], ready.get("message", ""), stored["status"]["observedGeneration"]

    await simulation.apply(INFERENCE_GRAPHS, graph)
    assert await readiness() == ("False", "no Deployments here", 1)
    server.strict = False
    simulation.enqueue_all()
    assert await readiness() == ("True", "", 1)
    server.strict = True
    await simulation.apply(INFERENCE_GRAPHS, {**graph, "spec": {"nodes": STEPS, "minReplicas": 2}})
    assert await readiness() == ("False", "no Deployments here", 2)
