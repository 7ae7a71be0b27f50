"""Which rule Envoy finds for a request, and how it changes the request: what routes mean, on the real thing."""

from __future__ import annotations

import json

import pytest
import pytest_asyncio
from aiohttp import web
from tests.unit.local.gateway.raw import named

from isvc.kube.objects import Object


async def echo(request: web.BaseRequest) -> web.Response:
    """Says which rule a request came by, and what it asks for."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    return web.Response(text=json.dumps({"path": request._message.path, "headers": headers}))


@pytest_asyncio.fixture(loop_scope="session")
async def echoing(gateway, sites):
    await gateway.service("s", (await sites(echo), True))
    return gateway


def rule(name: str, match: Object | None = None, *filters: Object) -> Object:
    told = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "x-rule", "value": name}]}}
    refs = [{"name": "s", "port": 80}]
    return {"matches": [match] if match else [], "backendRefs": refs, "filters": [told, *filters]}


async def found(gateway, path: str = "/", method: str = "GET", host: str = "h.test", **headers: str) -> str | None:
    """The rule that a request finds."""
    answer = await gateway.session.request(method, path, headers={"Host": host, **headers})
    return json.loads(await answer.text())["headers"]["x-rule"] if answer.status == 200 else None


def path(kind: str, value: str) -> Object:
    return {"path": {"type": kind, "value": value}}


async def test_the_more_exact_path_counts(echoing):
    rules = [
        rule("all", path("PathPrefix", "/")),
        rule("v1", path("PathPrefix", "/v1")),
        rule("models", path("Exact", "/v1/models")),
        rule("explain", path("RegularExpression", "/v9/.*:explain$")),
    ]
    await echoing.http_route(["h.test"], rules)
    for asked, expected in {
        "/": "all",
        "/v1": "v1",
        "/v1/": "v1",
        "/v1?q=/v1/models": "v1",
        "/v10": "all",
        "/v1/models": "models",
        "/v1/models/iris": "v1",
        "/v9/x:explain": "all",  # a prefix comes before an expression
    }.items():
        assert await found(echoing, asked) == expected, asked
    assert await found(echoing, host="other.test") is None


async def test_headers_methods_and_queries(echoing):
    rules = [
        rule("header", {"headers": [{"name": "Version", "value": "v2"}]}),
        rule("pattern", {"headers": [{"type": "RegularExpression", "name": "version", "value": "v[0-9]"}]}),
        rule("query", {"method": "POST", "queryParams": [{"name": "v", "value": "2"}]}),
        rule("expression", {"queryParams": [{"type": "RegularExpression", "name": "v", "value": "[a-c]+"}]}),
        rule("rest"),
    ]
    await echoing.http_route(["h.test"], rules)
    assert await found(echoing, version="v2") == "header"
    assert await found(echoing, version="v3") == "pattern"
    assert await found(echoing, version="v33") == "rest"  # the whole value
    assert await found(echoing, "/?v=2", "POST") == "query"
    assert await found(echoing, "/?v=2") == "rest"
    assert await found(echoing, "/?v=abc") == "expression"


async def test_no_pattern_takes_long(echoing):
    """With an engine that backtracks, a text of 40 characters takes hours."""
    hostile, slow = "(a+)+", "a" * 10_000 + "!"
    rules = [
        rule("path", path("RegularExpression", f"/{hostile}")),
        rule("header", {"headers": [{"type": "RegularExpression", "name": "x-a", "value": hostile}]}),
    ]
    await echoing.http_route(["h.test"], rules)
    assert await found(echoing, f"/{slow}", **{"X-A": slow}) is None
    assert await found(echoing, "/aaa") == "path"
    assert await found(echoing, **{"X-A": "aaa"}) == "header"


async def test_hosts_exact_wildcard_and_below_it(echoing):
    for name, hosts in (("exact", ["a.test"]), ("wild", ["*.test"])):
        match = path("PathPrefix", "/x" if name == "exact" else "/")
        await echoing.http_route(hosts, [rule(name, match)], name)
    assert await found(echoing, "/x", host="A.test:8080") == "exact"
    assert await found(echoing, "/y", host="a.test") == "wild"
    assert await found(echoing, "/y", host="b.c.test.") == "wild"
    assert await found(echoing, "/y", host="test") is None
    assert await found(echoing, "/x", host="none", **{"x-isvc-scope": "a.test"}) is None  # which nobody else can say
    answer = await echoing.session.get("/x", headers={"Host": "a.test", "X-Isvc-Scope": "*"})
    assert "x-isvc-scope" not in json.loads(await answer.text())["headers"]


async def test_a_thousand_services_share_this_machines_name(echoing):
    rules = [
        rule("all", path("PathPrefix", "/")),
        *(rule(f"s{number}", path("PathPrefix", f"/serving/default/s{number}")) for number in range(1000)),
        rule("deep", path("Exact", "/serving/default/s7/deep")),
        rule("pattern", path("RegularExpression", "/serving/default/s7/.*:explain")),
        rule("beside", path("PathPrefix", "/serving/default/s7/v1/x")),
        rule("colon", path("Exact", "/serving/default/s7:b")),
        rule("whole", path("Exact", "/serving/default/s7/")),
        rule("short", path("PathPrefix", "/serving/default")),
    ]
    await echoing.http_route(["localhost"], rules)
    expected = {
        "/serving/default/s7": "s7",
        "/serving/default/s7?q": "s7",
        "/serving/default/s7/": "whole",
        "/serving/default/s7/v1": "s7",
        "/serving/default/s7/deep": "deep",
        "/serving/default/s7/v1/x/y": "beside",
        "/serving/default/s7/v1/xy": "s7",
        "/serving/default/s7/v1/x:explain": "s7",
        "/serving/default/s7:b": "colon",
        "/serving/default/s999/v1": "s999",
        "/serving/default/s1000": "short",
        "/serving/default/S7": "short",
        "/serving/default?/s7": "short",
        "/serving//default/s7": "all",
        "/": "all",
    }
    for host in ("localhost", "127.0.0.1", "[::1]:8080", "LocalHost.:80"):
        assert {asked: await found(echoing, asked, host=host) for asked in expected} == expected, host
    await echoing.http_route([], [])
    assert await found(echoing, "/serving/default/s7", host="localhost") is None


@pytest.mark.parametrize(
    ("rewrite", "asked", "seen"),
    [
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}, "/serving/ns/iris/v1?a=b", "/v1?a=b"),
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"}, "/serving/ns/iris", "/new"),
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new/"}, "/serving/ns/iris/x", "/new/x"),
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}, "/serving/ns/iris", "/"),
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}, "/serving/ns/iris/", "/"),
        ({"type": "ReplaceFullPath", "replaceFullPath": "/full\\1"}, "/serving/ns/iris/v1?q", "/full\\1?q"),
    ],
)
async def test_paths_are_rewritten(echoing, rewrite, asked, seen):
    change = {"type": "URLRewrite", "urlRewrite": {"path": rewrite, "hostname": "inner.test"}}
    await echoing.http_route(["h.test"], [rule("r", path("PathPrefix", "/serving/ns/iris"), change)])
    said = await (await echoing.session.get(asked)).json(content_type=None)
    assert (said["path"], said["headers"]["host"]) == (seen, "inner.test")


def virtual_service(*http: Object) -> Object:
    return {"metadata": {"name": "v", "namespace": "default"}, "spec": {"hosts": ["h.test"], "http": http}}


def to(name: str, **more) -> Object:
    headers = {"request": {"set": {"x-rule": name, **more.pop("set", {})}}, **more.pop("headers", {})}
    return {"route": [{"destination": {"host": "s", "port": {"number": 80}}}], "headers": headers, **more}


@pytest.mark.parametrize(
    ("match", "asked", "expected"),
    [
        ({"uri": {"regex": "/v[12]/.*"}}, {"path": "/v1/x"}, True),
        ({"uri": {"regex": "/v[12]"}}, {"path": "/v1/x"}, False),
        ({"uri": {"prefix": "/a"}}, {"path": "/ab"}, True),
        ({"method": {"exact": "POST"}}, {"method": "GET"}, False),
        ({"headers": {"user": {"exact": "a"}}}, {"user": "a"}, True),
        ({"headers": {"user": {"prefix": "a"}}}, {"user": "abc"}, True),
        ({"headers": {"user": {}}}, {}, False),
        ({"withoutHeaders": {"user": {}}}, {}, True),
        ({"withoutHeaders": {"user": {"exact": "a"}}}, {}, True),
        ({"withoutHeaders": {"user": {"exact": "a"}}}, {"user": "a"}, False),
        ({"withoutHeaders": {"user": {"exact": "a"}}}, {"user": "b"}, True),
        ({"queryParams": {"v": {"exact": "2"}}}, {"path": "/?v=2"}, True),
        ({"authority": {"regex": r"^h\.test(?::\d{1,5})?$"}}, {"host": "h.test:8080"}, True),
    ],
)
async def test_what_a_virtual_service_asks_for(echoing, match, asked, expected):
    await echoing.virtual_service(virtual_service(to("matched", match=[match]), to("rest")))
    assert (await found(echoing, **asked) == "matched") is expected


@pytest.mark.parametrize(
    ("match", "rewrite", "asked", "seen"),
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
async def test_paths_of_virtual_services_are_rewritten(echoing, match, rewrite, asked, seen):
    await echoing.virtual_service(virtual_service(to("r", match=[{"uri": match}], rewrite=rewrite)))
    assert (await (await echoing.session.get(asked)).json(content_type=None))["path"] == seen


async def test_headers_are_set_as_they_are_written(echoing):
    changes = {"response": {"add": {"Y": "50%"}, "remove": ["content-type"]}}
    await echoing.virtual_service(
        virtual_service(to("r", headers=changes, set={"Host": "inner.test", "X": "%REQ(a)%"}))
    )
    answer = await echoing.session.get("/", headers={"Canary": "yes"})
    said = (await answer.json(content_type=None))["headers"]
    assert (said["host"], said["x"], said["canary"]) == ("inner.test", "%REQ(a)%", "yes")
    assert answer.headers["Y"] == "50%"
    assert "Content-Type" not in answer.headers


async def test_a_rule_that_envoy_refuses_is_told_and_takes_no_other_with_it(echoing):
    others = ["a.test", "other.test", "z.test"]
    echoing.put_http_route(others, [rule("other")])
    bad = {**virtual_service(to("bad", set={"x": "1\n2"}, match=[{"uri": {"exact": "/bad"}}]))}
    await echoing.virtual_service({**bad, "spec": {**bad["spec"], "http": [*bad["spec"]["http"], to("good")]}})
    assert await found(echoing, "/x") == "good"
    assert [await found(echoing, host=each) for each in others] == ["other"] * 3  # told of at the same time
    refused = await echoing.session.get("/bad")
    assert refused.status == 500
    assert "VirtualService default/v asks for what Envoy refuses" in (await refused.json())["error"]
    await echoing.http_route(["third.test"], [rule("third")], "later")
    assert await found(echoing, host="third.test") == "third"


async def test_a_backend_that_a_route_may_not_name_takes_its_share_of_the_requests_and_says_why(gateway, sites):
    await gateway.service("s", (await sites(named("served")), True))
    refs = [{"name": "s", "port": 80}, {"name": "theirs", "port": 80}]
    why = {"s": "", "theirs": "it is theirs"}
    gateway.put_http_route(["h.test"], [{"backendRefs": refs}], "r", lambda ref: why[ref["name"]])
    await gateway.published()
    answers = [await gateway.session.get("/") for _ in range(60)]
    said = {(answer.status, await answer.text()) for answer in answers}
    assert said == {(200, "served"), (500, '{"error":"it is theirs"}\n')}


@pytest.mark.parametrize(
    "rule",
    [
        {"route": "nowhere"},
        {"route": [{"destination": {"host": "s"}, "weight": "much"}]},
        {"route": [{"destination": {"host": "s"}}], "headers": {"request": {"set": {"x": 5}}}},
        {"route": [{"destination": {"host": "s"}}], "match": [{"uri": {"prefix": 5}}]},
        {"route": [{"destination": {"host": "s"}}], "match": [{"headers": {"x": {"exact": 5}}}]},
        {"route": [{"destination": {"host": "s"}}], "rewrite": {"uri": ["/"]}},
        {"redirect": {"redirectCode": "elsewhere"}},
    ],
)
async def test_a_route_with_values_of_wrong_types_ends_no_others(gateway, sites, rule):
    """Nobody checks the fields of a VirtualService on a laptop."""
    await gateway.service("s", (await sites(named("served")), True))
    metadata = {"name": "wrong", "namespace": "default"}
    await gateway.virtual_service({"metadata": metadata, "spec": {"hosts": ["wrong.test"], "http": [rule]}})
    await gateway.route("h.test", ("s", 1))
    assert await (await gateway.session.get("/")).text() == "served"
