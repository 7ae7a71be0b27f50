"""What Envoy starts with: its ports, where it asks for the rest, and how much it may use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.local.gateway.envoy import logs, outside
from isvc.local.gateway.envoy.listeners import ACTIVE
from isvc.local.gateway.envoy.types import ADS, AGAIN, OWN_CLUSTER, Json, typed

ADMIN_SOCKET: Final = "admin.sock"
OWN_SOCKET: Final = "isvc.sock"
AGAIN_SOCKET: Final = "again.sock"
_MOST_CONNECTIONS: Final = 20_000
_LARGEST_HEAP: Final = 2 << 30
_LARGEST_PATTERN: Final = 100_000  # what RE2 makes of an expression
# All other statistics are not even made: each cluster would have dozens.
_STATISTICS: Final = [
    {"prefix": logs.STAT_PREFIX},
    {"exact": ACTIVE},
    {"safe_regex": {"regex": r"cluster\..*\.upstream_rq_active"}},
]


def bootstrap(listeners: Iterable[Json], *, proxy: str = "") -> Json:
    """Returns the configuration of a process whose working directory has the sockets.

    `proxy` is what this machine's environment asks for as the way to hosts outside.
    """
    stream = {"api_type": "DELTA_GRPC", "transport_api_version": "V3"}
    own = {"envoy_grpc": {"cluster_name": OWN_CLUSTER}}
    return {
        "node": {"id": "gateway", "cluster": "isvc"},
        "admin": {"address": {"pipe": {"path": ADMIN_SOCKET, "mode": 0o600}}},
        "dynamic_resources": {"ads_config": {**stream, "grpc_services": [own]}, "cds_config": ADS},
        "static_resources": {"listeners": [*listeners], "clusters": [*_own_clusters(), *outside.clusters(proxy)]},
        "stats_config": {
            "stats_matcher": {"inclusion_list": {"patterns": _STATISTICS}},
            "histogram_bucket_settings": [{"match": {"prefix": logs.STAT_PREFIX}, "buckets": logs.BUCKETS}],
        },
        "stats_flush_interval": "1s",  # how old the durations of requests may be
        "layered_runtime": {
            "layers": [
                {"name": "isvc", "static_layer": {"re2": {"max_program_size": {"error_level": _LARGEST_PATTERN}}}}
            ]
        },
        "overload_manager": _overload_manager(),
    }


def _own_clusters() -> Iterable[Json]:
    """Yields ourselves, and Envoy itself."""
    http2: Json = {"explicit_http_config": {"http2_protocol_options": {}}}
    yield _socket_cluster(OWN_CLUSTER, OWN_SOCKET, http2)
    same: Json = {"use_downstream_protocol_config": {"http_protocol_options": {}, "http2_protocol_options": {}}}
    yield {**_socket_cluster(AGAIN, AGAIN_SOCKET, same), "alt_stat_name": "-"}  # no service, where it is counted


def _socket_cluster(name: str, socket: str, protocol: Json) -> Json:
    endpoint = {"endpoint": {"address": {"pipe": {"path": socket}}}}
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    return {
        "name": name,
        "type": "STATIC",
        "connect_timeout": "10s",
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": [endpoint]}]},
        "circuit_breakers": {"thresholds": [{"max_requests": 100_000, "max_pending_requests": 100_000}]},
        "typed_extension_protocol_options": {options: typed(options, **protocol)},
    }


def _overload_manager() -> Json:
    """Returns limits beyond which Envoy refuses work rather than take the machine's memory."""
    monitors = "envoy.resource_monitors"
    heap = typed("envoy.extensions.resource_monitors.fixed_heap.v3.FixedHeapConfig", max_heap_size_bytes=_LARGEST_HEAP)
    connections = typed(
        "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
        max_active_downstream_connections=_MOST_CONNECTIONS,
    )
    actions = {"envoy.overload_actions.shrink_heap": 0.9, "envoy.overload_actions.stop_accepting_requests": 0.97}
    return {
        "refresh_interval": "0.5s",
        "resource_monitors": [
            {"name": f"{monitors}.fixed_heap", "typed_config": heap},
            {"name": f"{monitors}.global_downstream_max_connections", "typed_config": connections},
        ],
        "actions": [
            {"name": name, "triggers": [{"name": f"{monitors}.fixed_heap", "threshold": {"value": value}}]}
            for name, value in actions.items()
        ],
    }
