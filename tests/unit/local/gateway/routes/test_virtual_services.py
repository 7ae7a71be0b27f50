"""Istio's VirtualServices: which rule a request finds, and what becomes of it."""

from __future__ import annotations

import pytest
from aiohttp import web
from tests.unit.local.gateway.raw import named

from isvc.local.gateway.routes.rules import Rule
from isvc.local.gateway.routes.table import RouteTable


def table(*http: dict, hosts: tuple[str, ...] = ("h.test",)) -> RouteTable:
    metadata = {"name": "v", "namespace": "default"}
    return RouteTable.build([], [], [{"metadata": metadata, "spec": {"hosts": hosts, "http": http}}])


def to(name: str, **rule) -> dict:
    return {"route": [{"destination": {"host": name, "port": {"number": 80}}}], **rule}


def find(table: RouteTable, path: str = "/", host: str = "h.test", method: str = "GET", **maps) -> Rule | None:
    return table.find(host, method, path, maps.get("headers", {}), maps.get("query", {}))


def service(*http: dict, **request) -> str | None:
    rule = find(table(*http), **request)
    return rule.backends[0].service if rule else None


def test_the_first_rule_that_matches_counts():
    rules = [to("any", match=[{"uri": {"prefix": "/a"}}]), to("exact", match=[{"uri": {"exact": "/a"}}])]
    assert service(*rules, path="/a") == "any"
    assert service(*reversed(rules), path="/a") == "exact"
    assert service(*rules, path="/ab") == "any"
    assert service(*rules, path="/b") is None


@pytest.mark.parametrize(
    ("match", "request_", "expected"),
    [
        ({"uri": {"regex": "/v[12]/.*"}}, {"path": "/v1/x"}, True),
        ({"uri": {"regex": "/v[12]"}}, {"path": "/v1/x"}, False),
        ({"method": {"exact": "POST"}}, {"method": "GET"}, False),
        ({"headers": {"user": {"exact": "a"}}}, {"headers": {"user": "a"}}, True),
        ({"headers": {"user": {"prefix": "a"}}}, {"headers": {"user": "abc"}}, True),
        ({"headers": {"user": {}}}, {"headers": {}}, False),
        ({"withoutHeaders": {"user": {}}}, {"headers": {}}, True),
        ({"withoutHeaders": {"user": {"exact": "a"}}}, {"headers": {"user": "a"}}, False),
        ({"queryParams": {"v": {"exact": "2"}}}, {"query": {"v": "2"}}, True),
        ({"authority": {"regex": r"^h\.test(?::\d{1,5})?$"}}, {"headers": {"host": "h.test:8080"}}, True),
    ],
)
def test_matches(match, request_, expected):
    assert (service(to("s", match=[match]), **request_) == "s") is expected


def test_hosts_are_wildcards_short_names_or_have_a_port():
    any_host = table(to("s"), hosts=("*",))
    assert find(any_host, host="whatever.test") is not None
    named_table = table(to("s.other.svc.cluster.local"), hosts=("reviews", "localhost:8080", "*.w.test"))
    for host in ("reviews.default.svc.cluster.local", "localhost", "a.w.test"):
        rule = find(named_table, host=host)
        assert rule is not None
        assert (rule.backends[0].namespace, rule.backends[0].service) == ("other", "s")


@pytest.mark.parametrize(
    ("match", "rewrite", "path", "expected"),
    [
        ({"prefix": "/serving/default/iris/"}, {"uri": "/"}, "/serving/default/iris/v1/models", "/v1/models"),
        ({"exact": "/serving/default/iris"}, {"uri": "/"}, "/serving/default/iris", "/"),
        (
            {"regex": "/iris(/v1.*)"},
            {"uriRegexRewrite": {"match": "/iris(/v1.*)", "rewrite": "\\1"}},
            "/iris/v1/models",
            "/v1/models",
        ),
    ],
)
def test_rewrites(match, rewrite, path, expected):
    rule = find(table(to("s", match=[{"uri": match}], rewrite=rewrite)), path)
    assert rule is not None
    assert rule.filters.path(path, rule.match) == expected


def test_timeouts_retries_redirects_and_mirrors():
    rule = find(
        table(
            to(
                "s",
                timeout="0.5s",
                retries={"attempts": 3, "perTryTimeout": "100ms", "retryOn": "5xx,409,reset"},
                mirror={"host": "m"},
                mirrorPercentage={"value": 50.0},
            )
        )
    )
    assert rule is not None
    assert (rule.timeout, rule.attempt_timeout, rule.retry.attempts) == (0.5, 0.1, 3)
    assert {500, 599, 409} <= rule.retry.codes
    assert (rule.mirrors[0].backend.service, rule.mirrors[0].share) == ("m", 0.5)
    moved = find(table({"redirect": {"uri": "/new", "authority": "other.test"}}))
    assert moved is not None
    assert moved.redirect is not None
    assert (moved.redirect.status, moved.redirect.host) == (301, "other.test")


async def test_requests_go_by_it(gateway, sites):
    async def echo(request: web.BaseRequest) -> web.Response:
        return web.json_response({"path": request.path, "host": request.headers["Host"], "x": request.headers["X"]})

    gateway.service("a", (await sites(echo), True))
    gateway.service("b", (await sites(named("b")), True))
    changes = {"request": {"set": {"Host": "inner.test", "X": "1"}}, "response": {"add": {"Y": "2"}}}
    gateway.table = table(
        to("b", match=[{"headers": {"canary": {"exact": "yes"}}}]),
        to("a", match=[{"uri": {"prefix": "/p/"}}], rewrite={"uri": "/"}, headers=changes),
        {"fault": {"abort": {}}},
    )
    answer = await gateway.session.get("/p/x")
    assert await answer.json() == {"path": "/x", "host": "inner.test", "x": "1"}
    assert answer.headers["Y"] == "2"
    assert await (await gateway.session.get("/p/x", headers={"Canary": "yes"})).text() == "b"
    refused = await gateway.session.get("/")
    assert refused.status == 500
    assert "VirtualService default/v asks for `fault`" in (await refused.json())["error"]
