"""Istio's VirtualServices: what of them becomes a rule."""

from __future__ import annotations

import pytest

from isvc.kube.objects import Key, Object
from isvc.local.gateway.routes.rules import Rule
from isvc.local.gateway.routes.table import ANY, RouteTable
from isvc.local.gateway.routes.virtual_services import virtual_service_rules


def table(*http: dict, hosts: tuple[str, ...] = ("h.test",)) -> RouteTable:
    made = RouteTable()
    obj = {"metadata": {"name": "v", "namespace": "default"}, "spec": {"hosts": hosts, "http": http}}
    made.put_virtual_service(Key("default", "v"), obj)
    return made


def to(name: str, **rule) -> dict:
    return {"route": [{"destination": {"host": name, "port": {"number": 80}}}], **rule}


def only(*http: dict) -> Rule:
    [rule] = table(*http).rules("h.test")
    return rule


def test_rules_keep_their_order():
    rules = [to("any", match=[{"uri": {"prefix": "/a"}}]), to("exact", match=[{"uri": {"exact": "/a"}}])]
    for each in (rules, rules[::-1]):
        found = [rule.backends[0].service for rule in table(*each).rules("h.test")]
        assert found == [rule["route"][0]["destination"]["host"] for rule in each]


def test_hosts_are_wildcards_short_names_or_have_a_port():
    assert set(table(to("s"), hosts=("*",)).hosts) == {ANY}
    made = table(to("s.other.svc.cluster.local"), hosts=("reviews", "localhost:8080", "*.w.test"))
    assert set(made.hosts) == {"reviews.default.svc.cluster.local", "localhost", "*.w.test"}
    [rule] = made.rules("localhost")
    assert (rule.backends[0].namespace, rule.backends[0].service) == ("other", "s")


def test_timeouts_retries_redirects_and_mirrors():
    rule = only(
        to(
            "s",
            timeout="0.5s",
            retries={"attempts": 3, "perTryTimeout": "100ms", "retryOn": "5xx,409,reset"},
            mirror={"host": "m"},
            mirrorPercentage={"value": 50.0},
        )
    )
    assert rule.spec["timeouts"] == {"request": "0.5s", "backendRequest": "100ms"}
    assert rule.spec["retry"]["attempts"] == 3
    assert {500, 599, 409} <= set(rule.spec["retry"]["codes"])
    assert (rule.mirrors[0].backend.service, rule.mirrors[0].share) == ("m", 0.5)
    [redirect] = [
        each["requestRedirect"] for each in only({"redirect": {"uri": "/new", "authority": "o.test"}}).filters
    ]
    assert (redirect["statusCode"], redirect["hostname"]) == (301, "o.test")


def test_what_is_not_there_is_refused():
    refused = only({"fault": {"abort": {}}})
    assert refused.refusal is not None
    assert "VirtualService default/v asks for `fault`" in refused.refusal.reason
    by_method = only(to("s", match=[{"method": {"prefix": "P"}}]))
    assert by_method.refusal is not None
    assert "a method that is not given exactly" in by_method.refusal.reason


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ({}, {"a.test", "b.default.svc.cluster.local", "", "*.test"}),
        ({"regex": r"^a\.test:8080(?::\d{1,5})?$"}, {"a.test", "", "*.test"}),
        ({"regex": r"^b\.default(\.svc(\.cluster\.local)?)?$"}, {"b.default.svc.cluster.local", "", "*.test"}),
        ({"regex": r"a\.tests?(:[0-9]+)?"}, {"a.test", "", "*.test"}),
        ({"regex": r"x|a\.test"}, {"a.test", "b.default.svc.cluster.local", "", "*.test"}),
        ({"exact": "b.default.svc:80"}, {"b.default.svc.cluster.local", "", "*.test"}),
        ({"prefix": "a."}, {"a.test", "", "*.test"}),
    ],
)
def test_a_rule_is_for_those_hosts_that_its_authority_can_be(test: Object, expected: set[str]) -> None:
    hosts = ["a.test:8080", "b.default.svc.cluster.local", "*", "*.test"]
    spec = {"hosts": hosts, "http": [{"match": [{"authority": test}], "route": [{"destination": {"host": "s"}}]}]}
    found = virtual_service_rules({"metadata": {"name": "v", "namespace": "default"}, "spec": spec})
    assert {host for host, _ in found} == expected


def test_services_in_knative_mode_share_this_machines_name_and_no_rules() -> None:
    made = RouteTable()
    for name in "abc":
        own = {"authority": {"regex": rf"^{name}-default\.localhost:8080(?::\d{{1,5}})?$"}}
        shared = {"authority": {"regex": r"^localhost:8080(?::\d{1,5})?$"}}
        by_path = {**shared, "uri": {"prefix": f"/serving/default/{name}/"}}
        spec = {
            "hosts": [f"{name}-default.localhost:8080", "localhost:8080"],
            "http": [to(name, match=[own]), to(name, match=[by_path])],
        }
        metadata = {"name": name, "namespace": "default"}
        made.put_virtual_service(Key("default", name), {"metadata": metadata, "spec": spec})
    assert [rule.backends[0].service for rule in made.rules("localhost/serving/default/b")] == ["b"]
    assert [rule.backends[0].service for rule in made.rules("b-default.localhost")] == ["b"]
    assert made.rules("localhost") == []
