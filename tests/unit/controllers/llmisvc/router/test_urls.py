"""Which URLs a route has, which of them is the service's, and how the status describes them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.controllers.llmisvc.services import GATEWAY, gateway, path, route

from isvc.controllers.llmisvc.observed import Network
from isvc.controllers.llmisvc.router.addresses import sourced_addresses, url_of
from isvc.controllers.llmisvc.router.paths import base_paths
from isvc.controllers.llmisvc.router.urls import Discovered, discover
from isvc.kube.objects import Object
from isvc.serving.refused import Refused

HEADER = {"name": "X-Model", "value": "publishers/models/models/llama"}
POOL = {"kind": "InferencePool", "name": "p"}
WEB = {"name": "web", "port": 80, "protocol": "HTTP"}


def urls(of_route: Object, of_gateway: Object, network: Network | None = None, scheme: str = "http") -> list[str]:
    network = replace(network or Network(), gateways={GATEWAY: of_gateway})
    return [found.url for found in discover(of_route, network, scheme, "X-Model")]


def test_each_way_in_gives_its_shallowest_path() -> None:
    rules = (path("/models/llama"), path("/models/llama/v1/chat"), path("/publishers/models/models/llama"))
    assert base_paths(route(*rules, path("/", None, HEADER)), "X-Model") == [
        "/",
        "/models/llama",
        "/publishers/models/models/llama",
    ]


def test_rules_to_a_service_know_the_whole_path_and_those_to_a_pool_only_some_below() -> None:
    assert base_paths(route(path("/a", POOL), path("/a/b/c")), "X-Model") == ["/a/b/c"]
    assert base_paths(route(path("/a/b", POOL), path("/a/b/c", POOL)), "X-Model") == ["/a/b"]


def test_paths_behind_headers_of_the_user_are_not_advertised() -> None:
    assert base_paths(route(path("/secret", None, {"name": "x-tenant", "value": "a"})), "X-Model") == ["/"]
    assert base_paths(route(path("/own", None, HEADER)), "") == ["/"]


def test_standard_ports_are_left_out_and_ipv6_stands_in_brackets() -> None:
    https = {"name": "s", "port": 8443, "protocol": "HTTPS"}
    found = urls(route(path("/m")), gateway(WEB, https, addresses=("2001:db8::7",)))
    assert found == ["http://[2001:db8::7]/m", "https://[2001:db8::7]:8443/m"]


def test_host_names_of_the_route_go_before_those_of_the_listener_and_these_before_addresses() -> None:
    wildcard = {**WEB, "hostname": "*.example.org"}
    assert urls(route(path("/m")), gateway(wildcard)) == ["http://inference.example.org/m"]
    assert urls(route(path("/m"), hostnames=["*", "b.org", "a.org"]), gateway(wildcard)) == [
        "http://a.org/m",
        "http://b.org/m",
    ]


def test_two_listeners_of_one_port_give_a_url_once() -> None:
    listeners = (WEB, {**WEB, "name": "again"})
    assert urls(route(path("/m"), hostnames=["a.org"]), gateway(*listeners)) == ["http://a.org/m"]


def test_the_service_behind_a_gateway_gives_internal_urls_for_ports_that_it_has() -> None:
    backing = {"metadata": {"name": "gate-svc", "namespace": "kserve"}, "spec": {"ports": [{"port": 80}]}}
    alternative = {"name": "alt", "port": 8080, "protocol": "HTTP"}
    network = Network(gateway_services={GATEWAY: backing})
    found = urls(route(path("/m")), gateway(WEB, alternative, addresses=()), network)
    assert found == ["http://gate-svc.kserve.svc.cluster.local/m"]


@pytest.mark.parametrize(
    ("listeners", "section", "problem"),
    [
        ([WEB], "nope", 'listener "nope" not found in gateway kserve/gate'),
        ([{"name": "t", "port": 9, "protocol": "TCP"}], None, "no HTTP-capable listener found in gateway kserve/gate"),
        ([{"name": "t", "port": 9, "protocol": "TCP"}], "t", 'listener "t" uses unsupported protocol TCP'),
    ],
)
def test_a_gateway_that_cannot_take_the_route_is_named(listeners: list[Object], section: str, problem: str) -> None:
    attached = route(path("/m"))
    if section:
        attached["spec"]["parentRefs"][0]["sectionName"] = section
    with pytest.raises(Refused, match=problem):
        urls(attached, gateway(*listeners))


def found(*texts: str) -> list[Discovered]:
    return [Discovered(text, GATEWAY) for text in texts]


def test_the_url_is_the_first_under_the_own_path_that_can_be_reached_from_outside() -> None:
    candidates = found("http://10.0.0.1/models/llama", "http://a.org/", "https://a.org/models/llama")
    assert url_of(candidates, "models", "llama", "http") == "https://a.org/models/llama"


def test_where_nothing_can_be_reached_from_outside_the_configured_scheme_goes_first() -> None:
    inside = found("http://g.cluster.local/models/llama", "https://g.cluster.local/models/llama")
    assert url_of(inside, "models", "llama", "https") == "https://g.cluster.local/models/llama"
    assert url_of([], "models", "llama", "https") is None


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://a.org/models/llama", "gateway-external"),
        ("http://a.org/", "gateway-external-model-routing"),
        ("http://gate.kserve.svc.cluster.local/models/llama", "gateway-internal"),
        ("http://192.168.1.1/models/llama", "internal"),
        ("http://[fd00::1]/", "internal-model-routing"),
        ("http://lb.internal/x", "internal"),
        ("http://100.64.0.1/x", "gateway-external"),
    ],
)
def test_addresses_say_from_where_they_are_reached(url: str, kind: str) -> None:
    assert [address["name"] for address in sourced_addresses(found(url), {}, "models", "llama")] == [kind]


def test_addresses_name_the_model_and_its_adapters_and_where_it_matters_by_their_qualified_names_alone() -> None:
    spec = {"model": {"name": "m", "lora": {"adapters": [{"name": "sql"}, {"uri": "hf://nameless"}]}}}
    own, shared = sourced_addresses(found("http://a.org/models/llama", "http://a.org/"), spec, "models", "llama")
    qualified = ["publishers/models/models/m", "publishers/models/models/sql"]
    assert [model["name"] for model in own["models"]] == [qualified[0], "m", qualified[1], "sql"]
    assert [model["name"] for model in shared["models"]] == qualified
