"""Virtual hosts: which routes are tried for a name, and in which order.

A rule for any host serves the names that nobody else can have pointed at this machine: its own, addresses, and the
hosts of origins that the user allows. For pods, whose requests come through a port of their own, it serves every name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from isvc.kube.objects import Key, Object
from isvc.local.gateway.endpoints.services import Port
from isvc.local.gateway.envoy.messages import Route, RouteConfiguration, VirtualHost, encode, field
from isvc.local.gateway.envoy.routes import ask
from isvc.local.gateway.envoy.types import AGAIN, FIND_SCOPE, MOVED_HEADER, POD_HEADER, PROCESSOR, Json, typed
from isvc.local.gateway.routes.rules import Rule, service_rule

METRICS_PATH: Final = "/-/metrics"
METRICS: Final = "metrics"
UNROUTED: Final = "unrouted"
OUTSIDE: Final = "outside"
CATCH_ALL: Final = "*"
_KEPT: Final = 1 << 20  # bodies of up to this size can be sent again

_IS_ADDRESS: Final = (":authority", "RegularExpression", r"([0-9]{1,3}(\.[0-9]{1,3}){3}|\[[0-9a-f:.]+\])(:[0-9]+)?")
_IS_POD: Final = (POD_HEADER, "Present", "")


def routes_of_host(routes: Iterable[bytes], outside: Sequence[bytes], *, here: bool) -> list[bytes]:
    """Returns all routes of a host: those of its rules, those beyond, and the words for what none matches.

    `here` if its name is one of this machine's own, which have metrics.
    """
    return [_MOVED_ROUTE, *([_METRICS_ROUTE] if here else []), *routes, *outside, _UNROUTED_ROUTE]


def outside_routes(routes: Iterable[Json]) -> list[bytes]:
    """Returns the routes by which pods reach hosts that are none of ours."""
    return [encode_route(_outside(way)) for way in routes]


@lru_cache(maxsize=16_384)
def service_rules(key: Key, ports: tuple[Port, ...]) -> list[Rule]:
    """Returns the rules by which a Service is reached under its name in the cluster, at any of its ports."""
    return [
        service_rule(key.namespace, key.name, port.number, {"headers": [condition]})
        for port in ports
        for condition in _asks_for(port.number)
    ]


def short_name(key: Key) -> str:
    """Returns the name of a Service that others might have, too: it is for pods."""
    return f"{key.name}.{key.namespace}"


def for_pods(rules: Iterable[Rule]) -> list[Rule]:
    return [_only(rule, _IS_POD) for rule in rules]


def for_addresses(rules: Iterable[Rule]) -> list[Rule]:
    return [_only(rule, _IS_ADDRESS) for rule in rules]


def encode_route(route: Json) -> bytes:
    """Returns a route as a field of its virtual host."""
    return field(VirtualHost, "routes", encode(Route, route).SerializeToString())


def virtual_host(domain: str, routes: Sequence[bytes], further: bytes = b"") -> bytes:
    """Returns a virtual host as a field of its scope, with what is said about it further."""
    return field(RouteConfiguration, "virtual_hosts", b"".join((_head(domain), further, *routes)))


@lru_cache(maxsize=1024)
def _head(domain: str) -> bytes:
    return bytes(encode(VirtualHost, {"name": domain, "domains": [domain], **_COMMON}).SerializeToString())


@lru_cache(maxsize=4096)
def _only(rule: Rule, header: tuple[str, str, str]) -> Rule:
    """Returns the rule for those of its requests that have such a header, too: its name, the type of match, a value."""
    condition = dict(zip(("name", "type", "value"), header, strict=True))
    return replace(rule, match={**rule.match, "headers": [*(rule.match.get("headers") or ()), condition]})


def _asks_for(port: int) -> Iterable[Object]:
    """Yields the conditions of which a request for a port has one: it names the port, or 80 by naming none."""
    yield {"name": ":authority", "type": "Suffix", "value": f":{port}"}
    if port == 80:
        yield {"name": ":authority", "type": "Contains", "value": ":", "not": True}


def _outside(found: Json) -> Json:
    pod = {"name": POD_HEADER, "present_match": True}
    return {
        "name": OUTSIDE,
        **found,
        "match": {"prefix": "/", "headers": [pod, *found.get("match", {}).get("headers", ())]},
    }


_OFF: Final = typed("envoy.config.route.v3.FilterConfig", disabled=True)
_COMMON: Final[Json] = {
    "request_body_buffer_limit": _KEPT,
    "typed_per_filter_config": {FIND_SCOPE: _OFF, PROCESSOR: _OFF},  # the latter is on where a route asks
}
_TO_ENVOY: Final[Json] = {"route": {"cluster": AGAIN, "timeout": "0s"}}
_METRICS_ROUTE: Final = encode_route(  # a response in the route itself would keep allowed pages from reading it
    {"name": METRICS, "match": {"path": METRICS_PATH}, **_TO_ENVOY, **ask(METRICS)}
)
_UNROUTED_ROUTE: Final = encode_route({"name": UNROUTED, "match": {"prefix": "/"}, **_TO_ENVOY, **ask(UNROUTED)})
_HAS_MOVED: Final = {"name": MOVED_HEADER, "present_match": True}
_MOVED_ROUTE: Final = encode_route({"name": AGAIN, "match": {"prefix": "/", "headers": [_HAS_MOVED]}, **_TO_ENVOY})
