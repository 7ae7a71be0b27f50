"""Envoy's configuration as protobuf, which it is sent in. Slow: what is made here is kept as long as it holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from envoy.config.cluster.v3.cluster_pb2 import Cluster
from envoy.config.endpoint.v3.endpoint_pb2 import ClusterLoadAssignment
from envoy.config.route.v3.route_components_pb2 import Route, VirtualHost
from envoy.config.route.v3.route_pb2 import RouteConfiguration
from envoy.config.route.v3.scoped_route_pb2 import ScopedRouteConfiguration
from envoy.extensions.filters.http.cors.v3.cors_pb2 import CorsPolicy
from envoy.extensions.filters.http.ext_proc.v3 import ext_proc_pb2  # noqa: F401 - types of parts that may be any
from envoy.extensions.filters.http.rbac.v3.rbac_pb2 import RBACPerRoute
from envoy.extensions.load_balancing_policies.least_request.v3 import least_request_pb2  # noqa: F401
from envoy.extensions.load_balancing_policies.override_host.v3 import override_host_pb2  # noqa: F401
from envoy.extensions.retry.host.previous_hosts.v3 import previous_hosts_pb2  # noqa: F401
from envoy.extensions.transport_sockets.tls.v3 import tls_pb2  # noqa: F401
from envoy.extensions.transport_sockets.tls.v3.secret_pb2 import Secret
from envoy.extensions.upstreams.http.v3 import http_protocol_options_pb2  # noqa: F401
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor_pool import Default as descriptor_pool
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message_factory import GetMessageClass

from isvc.local.gateway.envoy.types import Json

__all__ = [
    "Cluster",
    "ClusterLoadAssignment",
    "CorsPolicy",
    "RBACPerRoute",
    "Route",
    "RouteConfiguration",
    "ScopedRouteConfiguration",
    "Secret",
    "VirtualHost",
    "encode",
    "field",
    "pack",
]

PREFIX: Final = "type.googleapis.com/"
_LENGTH_DELIMITED: Final = 2  # a string, bytes or a message


def encode(kind: type[Any], value: Json) -> Any:
    """Returns the message of a kind that the JSON means; raises ValueError where it means none."""
    try:
        return _message(kind.DESCRIPTOR, value)
    except (ParseError, TypeError, AttributeError, KeyError) as error:
        raise ValueError(str(error)) from None


def _message(descriptor: Any, value: Any) -> Any:
    """Does what `ParseDict` does, which takes four times as long, for JSON that names fields as protobuf does."""
    kind = _class(descriptor)
    if kind is AnyMessage:
        url = value["@type"]
        content = _message(_type(url), {key: each for key, each in value.items() if key != "@type"})
        return AnyMessage(type_url=url, value=content.SerializeToString())
    if descriptor.full_name.startswith("google.protobuf."):  # which are written in ways of their own
        return ParseDict(value, kind())
    inner = _fields_of_messages(descriptor)
    return kind(**{key: inner[key](each) if key in inner and each is not None else each for key, each in value.items()})


@cache
def _fields_of_messages(descriptor: Any) -> dict[str, Callable[[Any], Any]]:
    """Returns what turns JSON into the value of a field, for those that hold messages, one, several or by key."""
    return {field.name: convert for field in descriptor.fields if (convert := _converter(field))}


def _converter(field: Any) -> Callable[[Any], Any] | None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        each = inner.fields_by_name["value"].message_type
        return each and (lambda value: {key: _message(each, item) for key, item in value.items()})
    if inner is not None and field.is_repeated:
        return lambda value: [_message(inner, item) for item in value]
    return inner and (lambda value: _message(inner, value))


_class = cache(GetMessageClass)


@cache
def _type(url: str) -> Any:
    return descriptor_pool().FindMessageTypeByName(url.removeprefix(PREFIX))


def type_of(kind: type[Any]) -> str:
    """Returns the name by which resources of a kind are asked for."""
    return PREFIX + str(kind.DESCRIPTOR.full_name)


def pack(message: Any) -> AnyMessage:
    """Returns the message where any may stand."""
    return pack_bytes(type(message), message.SerializeToString())


def pack_bytes(kind: type[Any], content: bytes) -> AnyMessage:
    return AnyMessage(type_url=type_of(kind), value=content)


def field(kind: type[Any], name: str, content: bytes) -> bytes:
    """Returns a field of a message, in bytes.

    Fields may follow one another in any order and number, so that a large message is put together from parts that are
    kept, and not made anew for each of them that has changed.
    """
    number = kind.DESCRIPTOR.fields_by_name[name].number
    return _varint(number << 3 | _LENGTH_DELIMITED) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    digits = bytearray()
    while number > 0x7F:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    digits.append(number)
    return bytes(digits)
