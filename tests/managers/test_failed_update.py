"""A new version whose server crashes: the service stays ready, and says that it could not be updated, and why."""

from __future__ import annotations

from typing import Any

from tests.cluster.lifecycles.stage import Platform, running, service, set_up
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.conditions import is_true
from isvc.kube.objects import Object
from isvc.kube.resource import EVENTS, PODS
from isvc.toolkit.client import Client, kubeconfig

# Of pods that are made within a second, the first by name counts as the newest: "new" comes before "old".
LABELS = {"app": "isvc.life-predictor", "serving.kserve.io/inferenceservice": "life", "component": "predictor"}
CRASHED = {"terminated": {"reason": "Error", "exitCode": 1, "message": "no such file: model.joblib"}}
LOOPING = {"waiting": {"reason": "CrashLoopBackOff"}}


async def add_pod(client: Client, namespace: str, template: str, **status: Any) -> None:
    """A pod as the Deployment's ReplicaSet and the kubelet would have made it."""
    name = f"life-predictor-{template}"
    container = {"name": "kserve-container", "image": "server:1"}
    metadata = {"name": name, "namespace": namespace, "labels": {**LABELS, "pod-template-hash": template}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    await client.create(PODS, pod)
    await client.patch(PODS, name, {"status": status}, namespace, subresource="status")


def container_status(state: Object, last: Object | None = None) -> list[Object]:
    image = {"image": "server:1", "imageID": "", "ready": "running" in state, "restartCount": 1}
    return [{"name": "kserve-container", "state": state, "lastState": last or {}, **image}]


async def test_a_failed_update(cluster, client, namespace) -> None:
    platform = Platform(client)

    async def stored() -> Object:
        status: Object = (await client.get(INFERENCE_SERVICES, "life", namespace)).get("status") or {}
        return status

    async def loaded() -> bool:
        await platform.make_ready(namespace)
        return ((await stored()).get("modelStatus") or {}).get("transitionStatus") == "UpToDate"

    async def blocked() -> bool:
        return ((await stored()).get("modelStatus") or {}).get("transitionStatus") == "BlockedByFailedLoad"

    async def event_written() -> bool:
        events = (await client.list(EVENTS, namespace)).items
        return any(event["reason"] == "ModelLoadFailed" for event in events)

    await set_up(client, namespace, "Standard")
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace):
        await client.create(INFERENCE_SERVICES, service(namespace))
        ready = [{"type": "Ready", "status": "True"}]
        running_server = container_status({"running": {}})
        await add_pod(client, namespace, "old", phase="Running", conditions=ready, containerStatuses=running_server)
        await until(loaded, "the first version is loaded", every=0.1)
        await add_pod(client, namespace, "new", phase="Running", containerStatuses=container_status(CRASHED))
        again = {"status": {"containerStatuses": container_status(LOOPING, CRASHED)}}
        await client.patch(PODS, "life-predictor-new", again, namespace, subresource="status")
        await until(blocked, "the status says that the new version fails")
        await until(event_written, "an event says so, too")
        status = await stored()
        assert is_true(status["conditions"], "Ready")
        assert status["modelStatus"]["states"] == {"activeModelState": "Loaded", "targetModelState": "FailedToLoad"}
        assert status["modelStatus"]["lastFailureInfo"]["message"] == "no such file: model.joblib"
