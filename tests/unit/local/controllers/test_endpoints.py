from __future__ import annotations

import json

from isvc.kube.objects import Object
from isvc.local.controllers.endpoints import slice_of
from isvc.local.controllers.replicasets import first_to_go
from isvc.local.node.pods.ports import PORTS_ANNOTATION

SERVICE: Object = {
    "metadata": {"name": "s", "namespace": "ns", "uid": "service"},
    "spec": {"ports": [{"name": "http", "port": 80, "targetPort": "web"}, {"port": 81, "targetPort": 9000}]},
}


def pod(name="p", *, ready=True, deleting=False, **more):
    metadata = {
        "name": name,
        "namespace": "ns",
        "uid": name,
        "annotations": {PORTS_ANNOTATION: json.dumps({"8080": 41})},
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": {**metadata, **more},
        "spec": {"nodeName": "local", "containers": [{"name": "c", "ports": [{"name": "web", "containerPort": 8080}]}]},
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }


def made_of(service: Object, pod: Object) -> Object:
    made = slice_of(service, pod)
    assert made is not None
    return made


def test_a_pod_answers_on_its_local_ports():
    made = made_of(SERVICE, pod())
    assert made["ports"] == [
        {"name": "http", "port": 41, "protocol": "TCP"},
        {"name": "", "port": 9000, "protocol": "TCP"},
    ]
    assert made["endpoints"][0]["addresses"] == ["127.0.0.1"]
    assert made["endpoints"][0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert made["metadata"]["labels"]["kubernetes.io/service-name"] == "s"


def test_who_is_not_ready_or_going_gets_no_requests():
    assert made_of(SERVICE, pod(ready=False))["endpoints"][0]["conditions"]["ready"] is False
    going = made_of(SERVICE, pod(deleting=True))["endpoints"][0]["conditions"]
    assert going == {"ready": False, "serving": True, "terminating": True}
    eager = {**SERVICE, "spec": {**SERVICE["spec"], "publishNotReadyAddresses": True}}
    assert made_of(eager, pod(ready=False))["endpoints"][0]["conditions"]["ready"] is True


def test_a_pod_without_address_or_ports_is_no_endpoint():
    assert slice_of(SERVICE, pod(annotations={})) is None
    unplaced = pod()
    unplaced["status"].pop("podIP")
    assert slice_of(SERVICE, unplaced) is None


def test_the_least_useful_pods_go_first():
    fine, unready = pod("fine"), pod("unready", ready=False)
    unplaced = pod("unplaced")
    unplaced["spec"].pop("nodeName")
    newer = pod("newer", creationTimestamp="2026-02-01T00:00:00Z")
    order = [item["metadata"]["name"] for item in first_to_go([fine, newer, unready, unplaced])]
    assert order == ["unplaced", "unready", "newer", "fine"]
