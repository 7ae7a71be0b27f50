"""An object that was stored past our webhooks, or before there were any, gets the children of one that was admitted."""

from __future__ import annotations

import pytest

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    GROUP,
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
)
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.simulation.server import Place
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.conditions import find
from isvc.kube.objects import Object, without
from isvc.kube.resource import DEPLOYMENTS, PODS, Resource
from isvc.programs.options import Options
from isvc.programs.registration import Action, AdmissionWebhook
from isvc.programs.webhooks import ISVC_WEBHOOKS, LLM_WEBHOOKS, LOCALMODEL_WEBHOOKS

POD = {"resources": {"requests": {"cpu": "1"}}, "image": "server:1"}
PREDICTOR = {"containers": [{"name": "mine", **POD}]}
CASES: dict[str, tuple[Resource, Object]] = {
    "an LLM without a name": (LLM_INFERENCE_SERVICES, {"model": {"uri": "pvc://claim/m"}, "router": {"route": {}}}),
    "an LLM with a pod without containers": (
        LLM_INFERENCE_SERVICES,
        {"model": {"uri": "pvc://claim/a b", "name": "n"}, "template": {"nodeSelector": {"gpu": "yes"}}},
    ),
    "a container with another name": (INFERENCE_SERVICES, {"predictor": PREDICTOR, "transformer": PREDICTOR}),
    "an explainer with another name": (
        INFERENCE_SERVICES,
        {"predictor": PREDICTOR, "explainer": PREDICTOR},
    ),
    "an explainer without a version": (
        INFERENCE_SERVICES,
        {"predictor": PREDICTOR, "explainer": {"art": {"type": "SquareAttack", "storageUri": "gs://a/b"}}},
    ),
    "a graph": (
        INFERENCE_GRAPHS,
        {"nodes": {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://a.test"}]}}},
    ),
    "a framework": (INFERENCE_SERVICES, {"predictor": {"sklearn": {"storageUri": "gs://a/b"}}}),
    "a format with a protocol of its own": (
        INFERENCE_SERVICES,
        {"predictor": {"model": {"modelFormat": {"name": "triton"}, "storageUri": "gs://a/b"}}},
    ),
}


def document(resource: Resource, spec: Object) -> Object:
    metadata = {"name": "it", "namespace": "models"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def cluster() -> Cluster:
    made = Cluster(Options())
    made.install([], [], mode="Standard")
    return made


class Anything:
    """Stores whatever it is given."""

    async def admit(self, resource: Resource, new: Object, old: Object | None = None) -> Object:
        return new


def without_webhooks() -> Simulation:
    simulation = cluster().simulation
    simulation.server.admission = Anything()
    return simulation


async def admitted(resource: Resource, spec: Object) -> dict[Place, Object]:
    simulation = cluster().simulation
    await simulation.apply(resource, document(resource, spec))
    await simulation.settle()
    return dict(simulation.server.written)


async def stored(resource: Resource, spec: Object) -> dict[Place, Object]:
    simulation = without_webhooks()
    obj = document(resource, spec)
    obj["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
    simulation.seed([(resource, obj)])
    simulation.enqueue(resource, obj)
    await simulation.settle()
    return dict(simulation.server.written)


def children(written: dict[Place, Object]) -> set[Place]:
    return {place for place in written if place[0].group != GROUP}


def containers(written: dict[Place, Object]) -> list[Object]:
    """The containers of all Deployments, without the resources that the configuration gives to those admitted."""
    pods = [obj["spec"]["template"]["spec"] for (resource, *_), obj in written.items() if resource == DEPLOYMENTS]
    return [without(container, ("resources",)) for pod in pods for container in pod["containers"]]


@pytest.mark.parametrize("case", CASES)
async def test_it_gets_the_same_children(case: str) -> None:
    resource, spec = CASES[case]
    expected, found = await admitted(resource, spec), await stored(resource, spec)
    assert containers(expected)
    assert containers(found) == containers(expected)
    assert {place for place in found if place[0].group != GROUP} == {
        place for place in expected if place[0].group != GROUP
    }


def test_every_kind_that_a_webhook_defaults_is_tried() -> None:
    webhooks = (*ISVC_WEBHOOKS, *LLM_WEBHOOKS, *LOCALMODEL_WEBHOOKS)
    admission = [webhook for webhook in webhooks if isinstance(webhook, AdmissionWebhook)]
    defaulted = {webhook.resource.kind for webhook in admission if webhook.action is Action.MUTATE}
    assert defaulted - {PODS.kind} <= {resource.kind for resource, _ in CASES.values()}


async def test_a_framework_without_a_runtime_gets_no_container_and_is_told() -> None:
    simulation = without_webhooks()
    for key in simulation.objects.all_keys(CLUSTER_SERVING_RUNTIMES):
        simulation.objects.remove(CLUSTER_SERVING_RUNTIMES, key.name)
    service = document(INFERENCE_SERVICES, {"predictor": {"tensorflow": {"storageUri": "gs://a/b"}}})
    service["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
    simulation.seed([(INFERENCE_SERVICES, service)])
    simulation.enqueue(INFERENCE_SERVICES, service)
    await simulation.settle()
    assert containers(simulation.server.written) == []
    status = (simulation.objects.get(INFERENCE_SERVICES, "it", "models") or {})["status"]
    assert status["modelStatus"]["lastFailureInfo"]["reason"] == "NoSupportingRuntime"
    assert "tensorflow" in str(find(status["conditions"], "PredictorReady"))


async def test_a_name_that_a_configuration_gives_a_model_is_kept() -> None:
    simulation, kind = without_webhooks(), LLM_INFERENCE_SERVICE_CONFIGS
    base = {**document(kind, {"model": {"name": "given", "uri": "pvc://claim/m"}}), "kind": kind.kind}
    service = document(LLM_INFERENCE_SERVICES, {"baseRefs": [{"name": "it"}], "router": {"route": {}}})
    for resource, obj in ((kind, base), (LLM_INFERENCE_SERVICES, service)):
        obj["metadata"] |= {"uid": obj["kind"], "resourceVersion": "1", "generation": 1}
        simulation.seed([(resource, obj)])
    simulation.enqueue(LLM_INFERENCE_SERVICES, service)
    await simulation.settle()
    (server,) = containers(simulation.server.written)
    assert '--served-model-name "given"' in str(server).replace("\\\\", "")
