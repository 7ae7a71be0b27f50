"""v1 Endpoints say what EndpointSlices say."""

from __future__ import annotations

from isvc.kube.objects import Object
from isvc.local.controllers.legacy_endpoints import MANAGED_BY, endpoints_of

SERVICE: Object = {"metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}}}


def endpoint_slice(name: str, *, ready: bool, terminating: bool = False, port: int = 20001) -> Object:
    target = {"kind": "Pod", "name": name, "namespace": "default", "uid": name}
    conditions = {"ready": ready, "serving": ready, "terminating": terminating}
    endpoint = {"addresses": ["127.0.0.1"], "conditions": conditions, "nodeName": "local", "targetRef": target}
    ports = [{"name": "", "port": port, "protocol": "TCP"}]
    return {"metadata": {"name": f"web-{name}"}, "endpoints": [endpoint], "ports": ports}


def test_ready_and_unready_pods_are_told_apart_and_those_that_go_are_left_out() -> None:
    slices = [
        endpoint_slice("b", ready=False, port=20002),
        endpoint_slice("a", ready=True),
        endpoint_slice("c", ready=False, terminating=True),
    ]
    made = endpoints_of(SERVICE, slices)
    address = {"ip": "127.0.0.1", "nodeName": "local"}
    first, second = made["subsets"]
    assert first["addresses"] == [{**address, "targetRef": slices[1]["endpoints"][0]["targetRef"]}]
    assert first["ports"] == [{"port": 20001, "protocol": "TCP"}]
    assert "addresses" not in second
    assert second["notReadyAddresses"][0]["targetRef"]["name"] == "b"
    assert made["metadata"]["labels"] == {"app": "web", MANAGED_BY: "endpoint-controller"}


def test_a_service_without_pods_has_no_subsets() -> None:
    assert endpoints_of(SERVICE, [])["subsets"] == []
