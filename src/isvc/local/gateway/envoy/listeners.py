"""The ports of the gateway: HTTP/1.1 and HTTP/2 on each, for everybody, with TLS, and as the proxy of pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from isvc.local.gateway.envoy import guard, logs, outside
from isvc.local.gateway.envoy.replies import local_replies
from isvc.local.gateway.envoy.types import (
    ADS,
    AGAIN_HEADER,
    ENDPOINT_HEADER,
    MOVED_HEADER,
    OWN_CLUSTER,
    POD_HEADER,
    PROCESSOR,
    ROUTES,
    Json,
    typed,
)

STAT_PREFIX: Final = "gateway"
ACTIVE: Final = f"http.{STAT_PREFIX}.downstream_rq_active"
TERMINAL: Final = "/dev/stdout"
_LONGEST_WAIT: Final = "3600s"  # of a request that the processor holds
_LARGEST_HEADERS: Final = 96  # KiB: tokens and cookies may be long
_MOST_HEADERS: Final = 200
_BUFFER: Final = 1 << 20
_TLS_PROTOCOLS: Final = ("h2", "http/1.1")


@dataclass(frozen=True, slots=True)
class Limits:
    """How long clients may take, in seconds."""

    headers: float = 75.0  # to send a request's
    idle: float = 300.0  # between two requests
    stream: float = 3600.0  # without a byte in either direction, while a server thinks
    flush: float = 75.0  # to take the end of an answer
    close: float = 1.0  # to end a connection themselves that is ended for what they did


@dataclass(frozen=True, slots=True)
class Front:
    """What all listeners for people share."""

    allowed_origins: tuple[str, ...] = ()
    access_log: str = ""  # a file; /dev/stdout for the terminal
    access_log_json: bool = False
    limits: Limits = Limits()


def front(addresses: Sequence[str], port: int, settings: Front) -> Json:
    return _listener("front", addresses, port, _front(settings))


def again(socket: str, settings: Front) -> Json:
    """Returns the listener by which requests come back that are to be routed a second time."""
    manager = {**_front(settings, AGAIN_HEADER), "use_remote_address": False}
    return {**_listener("again", ["127.0.0.1"], 0, manager), "address": {"pipe": {"path": socket, "mode": 0o600}}}


def with_tls(addresses: Sequence[str], port: int, settings: Front) -> Json:
    """Returns the listener of https://*.localhost, whose certificates are made when a client asks for a name."""
    mapper = typed("envoy.extensions.transport_sockets.tls.cert_mappers.sni.v3.SNI", default_value="localhost")
    selector = typed(
        "envoy.extensions.transport_sockets.tls.cert_selectors.on_demand_secret.v3.Config",
        config_source=ADS,
        certificate_mapper={"name": "sni", "typed_config": mapper},
        prefetch_secret_names=["localhost"],
    )
    context = typed(
        "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        common_tls_context={
            "alpn_protocols": _TLS_PROTOCOLS,
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "custom_tls_certificate_selector": {"name": "on-demand-secret", "typed_config": selector},
        },
        disable_stateless_session_resumption=True,
        disable_stateful_session_resumption=True,
    )
    socket = {"name": "envoy.transport_sockets.tls", "typed_config": context}
    return _listener("tls", addresses, port, _front(settings), transport_socket=socket)


def for_pods(port: int, login: str, *, sandboxed: bool, limits: Limits) -> Json:
    """Returns the listener that is the HTTP proxy of pods."""
    filters = [guard.pods_only(login), _processor(), outside.dns_filter()]
    if sandboxed:
        filters.append(guard.not_this_machine())
    return _listener("pods", ["127.0.0.1"], port, _manager(filters, POD_HEADER, logs.stat_loggers(), limits))


def _front(settings: Front, mark: str = "") -> Json:
    loggers = logs.stat_loggers()
    filters = [guard.foreign_pages(settings.allowed_origins), _processor()]
    if settings.access_log:
        loggers.append(logs.file_logger(settings.access_log, as_json=settings.access_log_json))
        filters.insert(0, logs.log_filter(as_json=settings.access_log_json))
    return _manager(filters, mark, loggers, settings.limits)


def _listener(name: str, addresses: Sequence[str], port: int, manager: Json, **chain: Json) -> Json:
    first, *others = [{"socket_address": {"address": each, "port_value": port}} for each in addresses]
    return {
        "name": name,
        "address": first,
        "additional_addresses": [{"address": each} for each in others],
        "per_connection_buffer_limit_bytes": _BUFFER,
        "filter_chains": [
            {
                "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}],
                **chain,
            }
        ],
    }


def _manager(filters: Iterable[Json], mark: str, loggers: Iterable[Json], limits: Limits) -> Json:
    """`mark` is set on each request before anything else looks at it; what only the gateway may say is removed."""
    ours = (ENDPOINT_HEADER, POD_HEADER, AGAIN_HEADER, MOVED_HEADER)
    mutations: list[Json] = [{"remove": name} for name in ours]
    if mark:
        mutations.append({"append": {"header": {"key": mark, "value": "1"}}})
    early = typed("envoy.extensions.http.early_header_mutation.header_mutation.v3.HeaderMutation", mutations=mutations)
    router = typed("envoy.extensions.filters.http.router.v3.Router", suppress_envoy_headers=True)
    return typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=STAT_PREFIX,
        rds={"route_config_name": ROUTES, "config_source": ADS},
        use_remote_address=True,
        skip_xff_append=True,  # which would name an address of the network where a client is on this machine
        generate_request_id=False,
        server_header_transformation="PASS_THROUGH",
        strip_trailing_host_dot=True,
        early_header_mutation_extensions=[{"name": "isvc.headers", "typed_config": early}],
        max_request_headers_kb=_LARGEST_HEADERS,
        common_http_protocol_options={"idle_timeout": _seconds(limits.idle), "max_headers_count": _MOST_HEADERS},
        http_protocol_options={"accept_http_10": True},
        http2_protocol_options={
            "max_concurrent_streams": 256,
            "initial_stream_window_size": 1 << 18,
            "initial_connection_window_size": 1 << 20,
        },
        request_headers_timeout=_seconds(limits.headers),
        stream_idle_timeout=_seconds(limits.stream),
        stream_flush_timeout=_seconds(limits.flush),
        delayed_close_timeout=_seconds(limits.close),
        upgrade_configs=[{"upgrade_type": "websocket"}],
        local_reply_config=local_replies(),
        access_log=[*loggers],
        http_filters=[*filters, {"name": "envoy.filters.http.router", "typed_config": router}],
    )


def _processor() -> Json:
    """Returns the filter that asks about a request, on those routes that say so."""
    config = typed(
        "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor",
        grpc_service={"envoy_grpc": {"cluster_name": OWN_CLUSTER}},
        message_timeout=_LONGEST_WAIT,
        processing_mode={
            "request_header_mode": "SEND",
            "response_header_mode": "SKIP",
            "response_trailer_mode": "SEND",  # so that the stream lasts as long as the request
        },
        metadata_options={"receiving_namespaces": {"untyped": ["envoy.lb", logs.HELD.namespace]}},
        status_on_error={"code": "ServiceUnavailable"},
    )
    return {"name": PROCESSOR, "disabled": True, "typed_config": config}


def _seconds(number: float) -> str:
    return f"{number:g}s"
