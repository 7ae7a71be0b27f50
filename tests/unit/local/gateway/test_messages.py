"""Envoy's configuration as protobuf: what protobuf's own reader of JSON makes of it, in less time."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import ParseDict

from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.clusters import assignment, cluster
from isvc.local.gateway.envoy.messages import Cluster, ClusterLoadAssignment, Route, encode
from isvc.local.gateway.envoy.routes import ask

ROUTE = {
    "name": "httproute default/iris",
    "match": {"path_separated_prefix": "/iris", "headers": [{"name": ":method", "string_match": {"exact": "GET"}}]},
    "route": {
        "cluster": "default/iris",
        "timeout": "1.5s",
        "retry_policy": {"num_retries": 4, "retriable_status_codes": [502, 503]},
        "request_mirror_policies": [
            {"cluster": "a", "runtime_fraction": {"default_value": {"denominator": "MILLION"}}}
        ],
    },
    "metadata": {"filter_metadata": {"isvc": {"request": "no answer", "tries": 3}}},
    "response_headers_to_add": [{"header": {"key": "a", "value": "b"}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}],
    **ask("metrics"),
}
MESSAGES: list[tuple[Any, Any]] = [
    (Route, ROUTE),
    (Route, {"match": {"prefix": "/"}, "redirect": {"response_code": "FOUND", "port_redirect": 8443}}),
    (Cluster, cluster("one", "one", http2=False)),
    (Cluster, cluster("two", "two", http2=True, picked=True, tls=True)),
    (ClusterLoadAssignment, assignment("one", [Endpoint("127.0.0.1", 80)], [Endpoint("::1", 81)], comes_back=True)),
]


@pytest.mark.parametrize(("kind", "value"), MESSAGES)
def test_a_message_is_what_the_json_means(kind: Any, value: Any) -> None:
    assert encode(kind, value) == ParseDict(value, kind())


@pytest.mark.parametrize(
    "wrong",
    [{"nome": "x"}, {"name": 1}, {"match": "/"}, {"match": {"headers": 5}}, {"typed_per_filter_config": {"a": {}}}],
)
def test_what_means_none_is_one_kind_of_error(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode(Route, wrong)
