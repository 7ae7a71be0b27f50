"""Scopes: the routes of one host each. Envoy gets them one by one, so that a change costs what has changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.local.gateway.envoy.messages import RouteConfiguration, ScopedRouteConfiguration, encode, field
from isvc.local.gateway.envoy.types import AGAIN_HEADER, POD_HEADER, SCOPE_HEADER, Json

_EVERYWHERE: Json = {
    "ignore_port_in_host_matching": True,
    "most_specific_header_mutations_wins": True,
    "validate_clusters": False,
    "request_headers_to_add": [
        {"header": {"key": "x-forwarded-host", "value": "%REQ(:AUTHORITY)%"}, "append_action": "ADD_IF_ABSENT"},
        {"header": {"key": "x-forwarded-for", "value": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"}},
    ],
    "request_headers_to_remove": [
        POD_HEADER,
        AGAIN_HEADER,
        SCOPE_HEADER,
        "proxy-authorization",
        "proxy-connection",
        "x-envoy-external-address",
    ],
}
_HEAD: Final = encode(RouteConfiguration, _EVERYWHERE).SerializeToString()


def scope(name: str, virtual_hosts: Iterable[bytes], number: int, further: bytes = b"") -> bytes:
    """Returns the message of a scope, with what is said further about all its hosts.

    With another number Envoy takes it for another, whatever it has of it already.
    """
    routes = RouteConfiguration(name=str(number)).SerializeToString() + _HEAD + further + b"".join(virtual_hosts)
    frame = ScopedRouteConfiguration(name=name, key={"fragments": [{"string_key": name}]})
    return bytes(frame.SerializeToString()) + field(ScopedRouteConfiguration, "route_configuration", routes)
