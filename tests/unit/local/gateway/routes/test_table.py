"""Which rules a host has, and in which order they are tried."""

from __future__ import annotations

import pytest

from isvc.kube.durations import limit
from isvc.kube.objects import Key
from isvc.local.gateway.names import cluster_name
from isvc.local.gateway.routes.table import ANY, RouteTable


def ingress(host: str, *paths: tuple[str, str, str], name: str = "i", created: str = "2026-01-01T00:00:00Z") -> dict:
    rules = [
        {"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": {"number": 80}}}}
        for path, kind, service in paths
    ]
    metadata = {"name": name, "namespace": "default", "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"rules": [{"host": host, "http": {"paths": rules}}]}}


def http_route(*rules: dict, name: str = "r", created: str = "2026-01-01T00:00:00Z") -> dict:
    metadata = {"name": name, "namespace": "default", "creationTimestamp": created}
    return {"metadata": metadata, "spec": {"rules": rules}}


def rule(service: str, **match) -> dict:
    return {"matches": [match] if match else [], "backendRefs": [{"name": service, "port": 80}]}


def table(*objects: dict, hosts: tuple[str, ...] = ("h.test",)) -> RouteTable:
    """A table of Ingresses and of HTTPRoutes for these hosts."""
    made = RouteTable()
    for obj in objects:
        if "matches" in str(obj):
            made.put_http_route(Key.of(obj), obj, hosts)
        else:
            made.put_ingress(Key.of(obj), obj)
    return made


def order(made: RouteTable, host: str = "h.test") -> list[str]:
    return [rule.backends[0].service for rule in made.rules(host)]


PREFIX = {"type": "PathPrefix", "value": "/a"}
ONE, TWO = {"name": "one", "value": "1"}, {"name": "two", "value": "2"}


@pytest.mark.parametrize(
    ("lesser", "greater"),
    [
        (rule("n", path=PREFIX, method="GET"), rule("y", path={"type": "Exact", "value": "/a/b"})),
        (rule("n", path=PREFIX, method="GET"), rule("y", path={"type": "PathPrefix", "value": "/a/b"})),
        (rule("n", path=PREFIX, headers=[ONE, TWO]), rule("y", path=PREFIX, method="GET")),
        (rule("n", path=PREFIX, headers=[ONE], queryParams=[ONE, TWO]), rule("y", path=PREFIX, headers=[ONE, TWO])),
        (rule("n", path=PREFIX, queryParams=[ONE]), rule("y", path=PREFIX, queryParams=[ONE, TWO])),
        (rule("n", path={**PREFIX, "value": "/a/"}), rule("y", path=PREFIX, method="GET")),
        (rule("n", path={"type": "RegularExpression", "value": "/a/b"}), rule("y", path=PREFIX)),
    ],
    ids=["exact", "longer", "method", "headers", "query", "slash", "expression"],
)
def test_precedence_does_not_depend_on_the_order(lesser, greater):
    for rules in ([lesser, greater], [greater, lesser]):
        assert order(table(http_route(*rules))) == ["y", "n"]


def test_of_equal_rules_the_older_object_and_the_first_count():
    old = http_route(rule("first", path=PREFIX), rule("second", path=PREFIX), name="z")
    new = http_route(rule("third", path=PREFIX), name="a", created="2026-02-01T00:00:00Z")
    assert order(table(new, old)) == ["first", "second", "third"]


def test_a_name_that_is_asked_for_twice_counts_once():
    twice = rule("s", headers=[ONE, {"name": "ONE", "value": "2"}])
    [found] = table(http_route(twice)).rules("h.test")
    assert [condition["value"] for condition in found.match["headers"]] == ["1"]


def test_exact_hosts_come_before_wildcards_and_rules_for_any_host_stand_apart():
    made = table(
        ingress("*.test", ("/", "Prefix", "wild"), name="w"),
        ingress("*.a.test", ("/", "Prefix", "narrow"), name="n"),
        ingress("", ("/", "Prefix", "any"), name="a"),
        ingress("b.a.test", ("/x", "Prefix", "exact"), name="e"),
    )
    assert order(made, "b.a.test") == ["exact", "narrow", "wild"]
    assert order(made, "*.a.test") == ["narrow", "wild"]
    assert order(made, ANY) == ["any"]
    assert [made.names(host) for host in ("b.a.test", "c.test", "test", "c.example")] == [True, True, False, False]


def test_what_has_changed_is_known_by_its_hosts():
    made = table(ingress("a.test", ("/", "Prefix", "s"), name="a"), ingress("b.test", ("/", "Prefix", "s"), name="b"))
    made.changed.clear()
    made.put_ingress(Key("default", "a"), ingress("c.test", ("/", "Prefix", "s"), name="a"))
    assert made.changed == {"a.test", "c.test"}
    made.put_ingress(Key("default", "b"), None)
    assert set(made.hosts) == {"c.test"}


@pytest.mark.parametrize("host", ["a b", "a.*", "*", "*a.test", "a..test", "-a.test", "a.test/x"])
def test_what_is_no_host_is_nobodys(host):
    made = RouteTable()
    made.put_http_route(Key("default", "r"), http_route(rule("s")), [host])
    assert set(made.hosts) == set()


@pytest.mark.parametrize("pattern", ["(", r"/(a)\1", "/(?=a)"])
def test_a_route_with_a_pattern_that_is_none_is_left_out_alone(pattern, caplog):
    def route(value: str, name: str) -> dict:
        return http_route(rule(name, path={"type": "RegularExpression", "value": value}), name=name)

    assert order(table(route(pattern, "broken"), route("/.*", "sound"))) == ["sound"]
    assert f'the routes of default/broken are left out: "{pattern}": ' in caplog.text
    broken = ingress("h.test", ("/v1/(", "ImplementationSpecific", "broken"))
    assert order(table(broken, ingress("h.test", ("/", "Prefix", "sound"), name="s"))) == ["sound"]


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("1m30s", 90), ("500ms", 0.5), ("0s", None), ("", None), ("1h", 3600)]
)
def test_durations(text, seconds):
    assert limit(text) == seconds


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("iris-predictor.default", ("iris-predictor", "default")),
        ("iris-predictor.default.svc", ("iris-predictor", "default")),
        ("iris-predictor.default.svc.cluster.local", ("iris-predictor", "default")),
        ("iris-default.localhost", None),
        ("localhost", None),
        ("127.0.0.1", None),
        ("storage.googleapis.com", None),
    ],
)
def test_names_of_the_cluster(host, expected):
    assert cluster_name(host) == expected


def test_services_that_share_this_machines_name_change_one_by_one():
    def path(name: str) -> dict:
        return http_route(rule(name, path={"type": "PathPrefix", "value": f"/serving/default/{name}"}), name=name)

    made = table(path("a"), path("b.example.com"), hosts=("localhost",))
    made.put_http_route(Key("default", "wild"), http_route(rule("wild"), name="wild"), ["*.example.com"])
    made.changed.clear()
    made.put_http_route(Key("default", "a"), path("a"), ["localhost"])
    assert made.changed == {"localhost/serving/default/a"}
    made.put_http_route(Key("default", "all"), http_route(rule("all"), name="all"), ["localhost"])
    assert made.changed == {"localhost", "localhost/serving/default/a", "localhost/serving/default/b.example.com"}
    assert order(made, "localhost/serving/default/a") == ["a", "all"]
    assert order(made, "localhost/serving/default/b.example.com") == ["b.example.com", "all"]
    for asked, expected in (("/serving/default/a", ["a", "all"]), ("/serving/default/ab", ["all"]), ("/", ["all"])):
        assert [each.backends[0].service for each in made.rules_for("127.0.0.1", asked)] == expected
    assert made.hosts == {"localhost", "*.example.com"}
    made.put_http_route(Key("default", "a"), None, ())
    assert not made.has("localhost/serving/default/a")
