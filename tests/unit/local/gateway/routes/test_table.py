from __future__ import annotations

import pytest

from isvc.local.durations import limit
from isvc.local.gateway.requests.target import cluster_name
from isvc.local.gateway.routes.table import RouteTable


def ingress(host, *paths, name="i", created="2026-01-01T00:00:00Z"):
    return {
        "metadata": {"name": name, "namespace": "default", "creationTimestamp": created},
        "spec": {
            "rules": [
                {
                    "host": host,
                    "http": {
                        "paths": [
                            {"path": p, "pathType": t, "backend": {"service": {"name": s, "port": {"number": 80}}}}
                            for p, t, s in paths
                        ]
                    },
                }
            ]
        },
    }


def http_route(*rules, hostnames=("h.test",)):
    return {"metadata": {"name": "r", "namespace": "default"}, "spec": {"rules": rules}}, list(hostnames)


def service(table, host, path, method="GET", headers=None, query=None):
    rule = table.find(host, method, path, headers or {}, query or {})
    return rule.backends[0].service if rule else None


def test_the_more_exact_path_wins_whatever_the_order():
    table = RouteTable.build(
        [
            ingress(
                "h.test",
                ("/", "Prefix", "all"),
                ("/v1", "Prefix", "v1"),
                ("/v1/models", "Exact", "models"),
                ("/v9/.*:explain$", "ImplementationSpecific", "explain"),
                ("/plain", "ImplementationSpecific", "plain"),
            )
        ]
    )
    for path, expected in {
        "/": "all",
        "/v1": "v1",
        "/v1/": "v1",
        "/v10": "all",
        "/v1/models": "models",
        "/v1/models/iris": "v1",
        "/plain/x": "plain",
    }.items():
        assert service(table, "h.test", path) == expected, path
    assert service(table, "other.test", "/") is None


def test_exact_hosts_come_before_wildcards_and_those_before_any_host():
    table = RouteTable.build(
        [
            ingress("*.test", ("/", "Prefix", "wild")),
            ingress("", ("/", "Prefix", "any")),
            ingress("a.test", ("/x", "Prefix", "exact")),
        ]
    )
    assert service(table, "a.test", "/x") == "exact"
    assert service(table, "a.test", "/y") == "wild"
    assert service(table, "b.test", "/y") == "wild"
    assert service(table, "b.example", "/y") == "any"


def test_routes_match_on_headers_method_query_and_expressions():
    def backend(name):
        return [{"name": name, "port": 80}]

    table = RouteTable.build(
        [],
        [
            http_route(
                {
                    "matches": [{"path": {"type": "RegularExpression", "value": "^/.*$"}}],
                    "backendRefs": backend("rest"),
                },
                {
                    "matches": [
                        {
                            "path": {"type": "RegularExpression", "value": "^/inference\\.GRPC/.*$"},
                            "headers": [
                                {"type": "RegularExpression", "name": "Content-Type", "value": "^application/grpc.*"}
                            ],
                        }
                    ],
                    "backendRefs": backend("grpc"),
                },
                {
                    "matches": [
                        {"method": "POST", "path": {"value": "/a"}, "queryParams": [{"name": "v", "value": "2"}]}
                    ],
                    "backendRefs": backend("post"),
                },
            )
        ],
    )
    assert service(table, "h.test", "/inference.GRPC/x", headers={"content-type": "application/grpc+proto"}) == "grpc"
    assert service(table, "h.test", "/inference.GRPC/x") == "rest"
    assert service(table, "h.test", "/a", "POST", query={"v": "2"}) == "post"
    assert service(table, "h.test", "/a", "POST", query={"v": "1"}) == "rest"
    assert service(table, "h.test", "/a", "GET", query={"v": "2"}) == "rest"


HOSTILE = "(a+)+"  # with an engine that backtracks, a text of 40 characters takes hours


def test_no_pattern_of_a_route_takes_long():
    slow, regex = "a" * 10_000 + "!", {"type": "RegularExpression", "value": HOSTILE}
    backends = [{"name": "s", "port": 80}]
    table = RouteTable.build(
        [ingress("i.test", (f"/{HOSTILE}$", "ImplementationSpecific", "s"))],
        [
            http_route({"matches": [{"path": {**regex, "value": f"/{HOSTILE}"}}], "backendRefs": backends}),
            http_route({"matches": [{"headers": [{**regex, "name": "X-A"}]}], "backendRefs": backends}),
            http_route({"matches": [{"queryParams": [{**regex, "name": "a"}]}], "backendRefs": backends}),
        ],
    )
    for host in ("h.test", "i.test"):
        assert service(table, host, f"/{slow}", headers={"x-a": slow}, query={"a": slow}) is None
        assert service(table, host, "/aaa") == "s"
    assert service(table, "h.test", "/", headers={"x-a": "aaa"}) == "s"
    assert service(table, "h.test", "/", query={"a": "aaa"}) == "s"


@pytest.mark.parametrize("pattern", ["(", r"/(a)\1", "/(?=a)"])
def test_a_route_with_a_pattern_that_is_none_is_left_out_alone(pattern, caplog):
    def route(value):
        path = {"type": "RegularExpression", "value": value}
        return http_route({"matches": [{"path": path}], "backendRefs": [{"name": value, "port": 80}]})

    table = RouteTable.build([], [route(pattern), route("/.*")])
    assert service(table, "h.test", "/aa") == "/.*"
    assert f'the routes of default/r are left out: "{pattern}": ' in caplog.text


def test_bytes_that_are_no_text_are_characters_to_a_pattern():
    path = {"type": "RegularExpression", "value": "/.*"}
    table = RouteTable.build([], [http_route({"matches": [{"path": path}], "backendRefs": [{"name": "s"}]})])
    assert service(table, "h.test", "/é") == "s"
    assert service(table, "h.test", "/\udcff") == "s"


@pytest.mark.parametrize(
    ("rewrite", "path", "seen"),
    [
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}, "/serving/ns/iris/v1/models", "/v1/models"),
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"}, "/serving/ns/iris", "/new"),
        ({"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}, "/serving/ns/iris", "/"),
        ({"type": "ReplaceFullPath", "replaceFullPath": "/full"}, "/serving/ns/iris/v1", "/full"),
    ],
)
def test_rewrites(rewrite, path, seen):
    table = RouteTable.build(
        [],
        [
            http_route(
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": "/serving/ns/iris"}}],
                    "filters": [{"type": "URLRewrite", "urlRewrite": {"path": rewrite}}],
                    "backendRefs": [{"name": "s", "port": 80}],
                }
            )
        ],
    )
    rule = table.find("h.test", "GET", path, {}, {})
    assert rule is not None
    assert rule.filters.path(path, rule.match) == seen


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


def test_an_object_whose_expression_does_not_compile_breaks_no_other():
    broken = ingress("h.test", ("/v1/(", "ImplementationSpecific", "broken"), name="broken")
    table = RouteTable.build([broken, ingress("h.test", ("/", "Prefix", "sound"))])
    assert service(table, "h.test", "/v1/(") == "sound"
    rule = {"matches": [{"path": {"type": "RegularExpression", "value": "*"}}], "backendRefs": [{"name": "broken"}]}
    assert service(RouteTable.build([], [http_route(rule)]), "h.test", "/") is None


def test_a_thousand_services_on_one_host_are_looked_through_no_longer_than_ten():
    def candidates(count):
        rules = [{"matches": [{"path": {"value": f"/serving/default/s{number}"}}]} for number in range(count)]
        table = RouteTable.build([], [http_route(*rules)])
        return [
            rule.match.path for rule in table.exact["h.test"].candidates("/serving/default/s7/v1/models/s7:predict")
        ]

    assert candidates(1000) == candidates(10) == ["/serving/default/s7"]
