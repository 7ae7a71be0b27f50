"""Which routes the gateway takes, and what it says about those that it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isvc.kube.objects import Object, dig
from isvc.local.gateway.gateway_api.attachment import CONTROLLER, Gateways
from isvc.local.gateway.gateway_api.status import gateway_status, listeners_of, route_status
from isvc.local.install.gateway import at_port, gateway, gateway_class

PORT = 8080
NOW, LATER = "2026-11-16T00:00:00Z", "2026-11-16T00:01:00Z"


def route(namespace: str = "default", hostnames: tuple[str, ...] = (), **parent: object) -> Object:
    reference = {"name": "kserve-ingress-gateway", "namespace": "kserve", **parent}
    backend = {"name": "model", "port": 80}
    return {
        "metadata": {"name": "r", "namespace": namespace, "generation": 3},
        "spec": {"parentRefs": [reference], "hostnames": list(hostnames), "rules": [{"backendRefs": [backend]}]},
    }


def gateways(*listeners: Object, namespaces: tuple[Object, ...] = ()) -> Gateways:
    installed = gateway("kserve", PORT)
    if listeners:
        installed["spec"]["listeners"] = [{"name": "l", "protocol": "HTTP", "port": PORT, **each} for each in listeners]
    return Gateways.of(PORT, [gateway_class()], [installed], namespaces)


def verdict(obj: Object, ours: Gateways) -> str:
    """Reason of Accepted."""
    [parent] = route_status(obj, ours, lambda *_: True, NOW)["parents"]
    assert parent["controllerName"] == CONTROLLER
    return parent["conditions"][0]["reason"]


def test_the_installed_gateway_takes_routes_of_every_namespace_for_their_hosts():
    assert gateways().hosts(route("team", ("a.test", "*.b.test"))) == ["a.test", "*.b.test"]
    assert gateways().hosts(route()) == [""]
    assert verdict(route("team"), gateways()) == "Accepted"


def test_gateways_of_other_classes_are_left_to_others():
    other = gateway("kserve", PORT)
    other["spec"]["gatewayClassName"] = "envoy"
    theirs = Gateways.of(PORT, [gateway_class()], [other], ())
    said = {"parentRef": {"name": "x"}, "controllerName": "envoy", "conditions": []}
    obj = {**route(), "status": {"parents": [said]}}
    assert theirs.hosts(obj) == []
    assert route_status(obj, theirs, lambda *_: True, NOW) == {"parents": [said]}


@pytest.mark.parametrize(
    ("listener", "parent", "expected"),
    [
        ({"port": 80}, {}, "NoMatchingParent"),
        ({"protocol": "HTTPS"}, {}, "NoMatchingParent"),
        ({}, {"sectionName": "other"}, "NoMatchingParent"),
        ({}, {"port": 9}, "NoMatchingParent"),
        ({}, {"sectionName": "l", "port": PORT}, "NotAllowedByListeners"),
        ({"allowedRoutes": {"namespaces": {"from": "All"}}, "hostname": "*.b.test"}, {}, "NoMatchingListenerHostname"),
        ({"allowedRoutes": {"namespaces": {"from": "All"}}, "hostname": "*.test"}, {}, "Accepted"),
    ],
)
def test_a_route_that_is_not_taken_learns_why(listener, parent, expected):
    obj = route("default", ("a.test",), **parent)
    assert verdict(obj, gateways(listener)) == expected
    assert gateways(listener).hosts(obj) == (["a.test"] if expected == "Accepted" else [])


def test_a_listener_may_choose_namespaces_by_label():
    chosen = {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"team": "a"}}}}
    spaces = tuple({"metadata": {"name": name, "labels": {"team": name}}} for name in ("a", "b"))
    ours = gateways({"allowedRoutes": chosen}, namespaces=spaces)
    assert [verdict(route(name), ours) for name in ("a", "b")] == ["Accepted", "NotAllowedByListeners"]


def test_of_two_hosts_the_narrower_one_counts():
    allowed = {"allowedRoutes": {"namespaces": {"from": "All"}}}
    assert gateways({**allowed, "hostname": "a.b.test"}).hosts(route(hostnames=("*.b.test",))) == ["a.b.test"]
    assert gateways({**allowed, "hostname": "*.test"}).hosts(route()) == ["*.test"]


def test_backends_that_cannot_take_requests_are_reported():
    [parent] = route_status(route(), gateways(), lambda *_: False, NOW)["parents"]
    assert [c["reason"] for c in parent["conditions"]] == ["Accepted", "BackendNotFound"]
    assert parent["conditions"][1]["message"] == "Service default/model does not exist"
    assert parent["conditions"][1]["observedGeneration"] == 3
    strange = route()
    strange["spec"]["rules"][0]["backendRefs"][0]["kind"] = "Teapot"
    [parent] = route_status(strange, gateways(), lambda *_: True, NOW)["parents"]
    assert parent["conditions"][1]["reason"] == "InvalidKind"


@pytest.mark.parametrize(
    ("grant", "expected"),
    [
        ({}, "ResolvedRefs"),
        ({"to": [{"group": "", "kind": "Service", "name": "model"}]}, "ResolvedRefs"),
        ({"to": [{"group": "", "kind": "Service", "name": "other"}]}, "RefNotPermitted"),
        ({"to": [{"group": "", "kind": "Secret"}]}, "RefNotPermitted"),
        ({"from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "c"}]}, "RefNotPermitted"),
        ({"from": [{"group": "gateway.networking.k8s.io", "kind": "GRPCRoute", "namespace": "a"}]}, "RefNotPermitted"),
        (None, "RefNotPermitted"),
    ],
)
def test_backends_of_another_namespace_need_a_grant_of_theirs(grant, expected):
    usual = {
        "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "a"}],
        "to": [{"group": "", "kind": "Service"}],
    }
    grants = [] if grant is None else [{"metadata": {"name": "g", "namespace": "b"}, "spec": {**usual, **grant}}]
    obj = route("a")
    obj["spec"]["rules"][0]["backendRefs"][0]["namespace"] = "b"
    ours = replace(gateways({"allowedRoutes": {"namespaces": {"from": "All"}}}), grants=tuple(grants))
    [parent] = route_status(obj, ours, lambda *_: True, NOW)["parents"]
    assert parent["conditions"][1]["reason"] == expected


def test_a_status_that_stays_keeps_its_time():
    first = route_status(route(), gateways(), lambda *_: True, NOW)
    assert route_status({**route(), "status": first}, gateways(), lambda *_: True, LATER) == first
    changed = route_status({**route(), "status": first}, gateways(), lambda *_: False, LATER)
    times = [c["lastTransitionTime"] for c in changed["parents"][0]["conditions"]]
    assert times == [NOW, LATER]


def test_a_gateway_says_where_it_listens_and_what_is_attached():
    ours = gateways()
    [installed] = ours.by_key.values()
    routes = [route(), route("team"), route(sectionName="other")]
    attached = [listener for each in routes for listener in listeners_of(installed, ours, each)]
    status = gateway_status(installed, ours, attached, NOW)
    assert [(c["type"], c["status"]) for c in status["conditions"]] == [("Accepted", "True"), ("Programmed", "True")]
    assert status["addresses"] == [{"type": "Hostname", "value": "localhost"}]
    assert dig(status, "listeners", 0, "attachedRoutes") == 2


def test_a_gateway_on_another_port_is_not_programmed():
    ours = gateways({"port": 80})
    [other] = ours.by_key.values()
    status = gateway_status(other, ours, [], NOW)
    assert [c["status"] for c in status["conditions"]] == ["False", "False"]
    assert status["conditions"][0]["message"] == "the gateway of this machine listens on port 8080 alone"
    assert [c["reason"] for c in status["listeners"][0]["conditions"]] == ["PortUnavailable", "Invalid", "ResolvedRefs"]


def test_the_listener_follows_the_port_of_a_start():
    installed = gateway("kserve", 8080)
    assert at_port(installed, 8080) is None
    assert at_port(installed, 9090) == gateway("kserve", 9090)["spec"]["listeners"]
