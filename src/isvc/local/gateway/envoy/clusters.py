"""Services and InferencePools as clusters of Envoy's, and the endpoints of each, which change far more often."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.types import ADS, ENDPOINT_HEADER, Json, typed

# Shorter than any server's, so that no request meets a connection its server is about to close (uvicorn: 5 s).
_KEEP_ALIVE: Final = "4s"
_CONNECT: Final = "10s"
_NO_LIMIT: Final = 1_000_000
_LIMITS: Final = dict.fromkeys(("max_connections", "max_pending_requests", "max_requests", "max_retries"), _NO_LIMIT)


_TLS: Final[Json] = {
    "name": "envoy.transport_sockets.tls",
    "typed_config": typed(
        "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", common_tls_context={"alpn_protocols": ["h2"]}
    ),
}


def cluster(name: str, service: str, *, http2: bool, picked: bool = False, tls: bool = False) -> Json:
    """Returns a cluster without its endpoints.

    `service` is what is counted and logged; `picked` if a filter may name the endpoint of a request. With
    `tls` certificates are not verified, as those of endpoint pickers are signed by themselves.
    """
    return {
        **({"transport_socket": _TLS} if tls else {}),
        "name": name,
        "alt_stat_name": service,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": ADS},
        "connect_timeout": _CONNECT,
        "load_balancing_policy": {"policies": [_override() if picked else _LEAST_REQUEST]},
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},  # what is drained gets nothing, whatever is left
        "circuit_breakers": {"thresholds": [_LIMITS]},
        "typed_extension_protocol_options": {
            "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": protocol(http2=http2)
        },
    }


def protocol(*, http2: bool) -> Json:
    """Returns how servers are spoken to."""
    version: Json = {"http2_protocol_options": {}} if http2 else {"http_protocol_options": {}}
    return typed(
        "envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        common_http_protocol_options={"idle_timeout": _KEEP_ALIVE},
        explicit_http_config=version,
    )


def assignment(
    name: str, endpoints: Iterable[Endpoint], draining: Iterable[Endpoint] = (), *, comes_back: bool = False
) -> Json:
    """Returns the endpoints of a cluster; those that drain finish what they have, and get nothing more.

    One whose pods come back has, while there is none, an endpoint that takes no connection: a request that was on its
    way to the last pod is tried again until there is one. Without any endpoint it would be refused at once.
    """
    known = [*map(_endpoint, endpoints), *({**_endpoint(each), "health_status": "DRAINING"} for each in draining)]
    if not comes_back:
        return {"cluster_name": name, "endpoints": [{"lb_endpoints": known}]}
    return {
        "cluster_name": name,
        "endpoints": [{"lb_endpoints": known}, {"lb_endpoints": [_NOBODY], "priority": 1}],
        "policy": {"overprovisioning_factor": _NO_LIMIT},  # one pod that is ready is enough
    }


_NOBODY: Final[Json] = {"endpoint": {"address": {"pipe": {"path": "nobody.sock"}}}}


def _endpoint(endpoint: Endpoint) -> Json:
    address = {"address": endpoint.host, "port_value": endpoint.port}
    return {"endpoint": {"address": {"socket_address": address}}}


def _policy(name: str, **fields: object) -> Json:
    config = typed(f"envoy.extensions.load_balancing_policies.{name}", **fields)
    return {"typed_extension_config": {"name": name.partition(".")[0], "typed_config": config}}


_LEAST_REQUEST: Final = _policy("least_request.v3.LeastRequest")


def _override() -> Json:
    """Returns the policy of the inference extension: a request goes where the picker says, else where least is done."""
    sources = [
        {"metadata": {"key": "envoy.lb", "path": [{"key": ENDPOINT_HEADER}]}},
        {"header": ENDPOINT_HEADER},
    ]
    return _policy(
        "override_host.v3.OverrideHost",
        override_host_sources=sources,
        fallback_policy={"policies": [_LEAST_REQUEST]},
    )
