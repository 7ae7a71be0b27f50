"""A bug in planning is reported as ours, counted, and tried again until it is gone."""

from __future__ import annotations

from tests.cluster.lifecycles.stage import Running, running, service, set_up
from tests.waiting import until

from isvc.api.annotations import FINALIZER
from isvc.api.codec import DecodeError
from isvc.api.resources import INFERENCE_SERVICES
from isvc.controllers.inferenceservice import kind
from isvc.controllers.inferenceservice.observe import Observer
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.planned import Planned
from isvc.kube.conditions import find
from isvc.kube.objects import Object
from isvc.kube.resource import DEPLOYMENTS
from isvc.toolkit.client import Client, kubeconfig


def panics(controller: Running) -> float:
    samples = next(iter(controller.manager.metrics.panics.collect())).samples
    return sum(sample.value for sample in samples if sample.name.endswith("_total"))


async def test_a_bug_is_reported(cluster, client, namespace, monkeypatch) -> None:
    is_mended = False

    def broken(observed: Observed) -> Planned:
        if is_mended:
            return plan(observed)
        raise TypeError("'NoneType' object is not subscriptable")

    async def ready() -> Object:
        stored = await client.get(INFERENCE_SERVICES, "life", namespace)
        return find((stored.get("status") or {}).get("conditions") or (), "Ready") or {}

    async def reported() -> bool:
        return (await ready()).get("reason") == "InternalError"

    async def withdrawn() -> bool:
        return not await reported()

    async def deployed() -> bool:
        return await client.find(DEPLOYMENTS, "life-predictor", namespace) is not None

    await set_up(client, namespace, "Standard")
    monkeypatch.setattr(kind, "plan", broken)
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace) as controller:
        await client.create(INFERENCE_SERVICES, service(namespace))
        await until(reported, "the status says that the fault is ours")
        await until(lambda: panics(controller) > 1, "it is tried again")
        condition = await ready()
        assert condition["status"] == "Unknown"
        assert "TypeError: 'NoneType' object is not subscriptable" in condition["message"]
        is_mended = True
        await until(deployed, "the service is deployed once the bug is gone")
        await until(withdrawn, "the status speaks of it no longer")


async def test_an_unreadable_service_can_be_deleted(cluster, client, namespace, monkeypatch) -> None:
    def unreadable(*_: object) -> None:
        raise DecodeError("spec.predictor.containers", "expected a list, got a string")

    async def refused() -> bool:
        stored = await client.get(INFERENCE_SERVICES, "life", namespace)
        ready = find((stored.get("status") or {}).get("conditions") or (), "Ready") or {}
        return ready.get("reason") == "InvalidSpec" and "spec.predictor.containers" in ready["message"]

    async def gone() -> bool:
        return await client.find(INFERENCE_SERVICES, "life", namespace) is None

    await set_up(client, namespace, "Standard")
    monkeypatch.setattr(Observer, "observe", unreadable)
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace):
        created = service(namespace)
        created["metadata"]["finalizers"] = [FINALIZER]
        await client.create(INFERENCE_SERVICES, created)
        await until(refused, "the status names the field")
        await client.delete(INFERENCE_SERVICES, "life", namespace)
        await until(gone, "the service is gone")
