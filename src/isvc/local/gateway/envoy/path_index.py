"""Finds the routes for a path without looking at all of them: a thousand services may share one host.

Envoy tries the routes of a virtual host one after the other. Here those that begin with the same path are a list of
their own, under that beginning; each list has everything, in its order, that can match a path which begins so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from envoy.config.route.v3.route_components_pb2 import RouteList
from envoy.type.matcher.v3.http_inputs_pb2 import HttpRequestHeaderMatchInput
from xds.core.v3.extension_pb2 import TypedExtensionConfig
from xds.type.matcher.v3.matcher_pb2 import Matcher

from isvc.local.gateway.envoy.messages import Route, encode, field, pack, pack_bytes
from isvc.local.gateway.envoy.types import Json

FEW: Final = 32
"""So many routes are faster tried than looked up."""

_PATH: Final = Matcher.MatcherTree(
    input=TypedExtensionConfig(name="path", typed_config=pack(HttpRequestHeaderMatchInput(header_name=":path")))
).SerializeToString()
_MatchMap: Final = Matcher.MatcherTree.MatchMap


class EncodedRoute(NamedTuple):
    """A route in bytes; how every path begins that it can match, and whether that is the whole path."""

    beginning: tuple[str, bool]
    content: bytes

    @classmethod
    def of(cls, value: Json) -> EncodedRoute:
        route = encode(Route, value)
        return cls(beginning(route.match), route.SerializeToString())


def index(routes: Sequence[EncodedRoute]) -> bytes:
    """Returns a Matcher that finds the same route as trying all in turn would."""
    lists = group_by_beginning([route.beginning for route in routes])
    found = {key: _try([routes[number].content for number in numbers]) for key, numbers in lists.items()}
    elsewhere = found.pop("")
    entries = b"".join(_entry(key, each) for key, each in found.items())
    tree = _PATH + field(Matcher.MatcherTree, "prefix_match_map", entries)
    return field(Matcher, "matcher_tree", tree) + field(Matcher, "on_no_match", elsewhere)


def beginning(match: Any) -> tuple[str, bool]:
    """Returns how every path begins that a route can match, and whether that is the whole path."""
    match match.WhichOneof("path_specifier"):
        case "path":
            return match.path, True
        case "path_separated_prefix":
            return match.path_separated_prefix, False
        case "prefix" if match.prefix != "/":
            return match.prefix, False
        case _:
            return "", False


def group_by_beginning(beginnings: Iterable[tuple[str, bool]]) -> dict[str, list[int]]:
    """Returns the numbers of routes that may match, in order, by the longest of the keys that a path begins with."""
    own: dict[str, list[int]] = {"": []}
    whole: list[tuple[str, int]] = []
    for number, (text, is_whole) in enumerate(beginnings):
        if is_whole:
            whole.append((text, number))
        else:
            own.setdefault(text, []).append(number)
    found = {key: sorted(number for each in _prefixes(key, own) for number in own[each]) for key in own}
    for text, number in whole:
        longest = max(_prefixes(text, own), key=len)
        found[longest] = sorted([*found[longest], number])
    return found


def _prefixes(text: str, keys: dict[str, list[int]]) -> list[str]:
    return [text[:length] for length in range(len(text) + 1) if text[:length] in keys]


def _entry(key: str, value: bytes) -> bytes:
    """Returns an entry of the map, which is a message of key and value."""
    return field(
        _MatchMap, "map", field(_MatchMap.MapEntry, "key", key.encode()) + field(_MatchMap.MapEntry, "value", value)
    )


def _try(routes: Iterable[bytes]) -> bytes:
    """Returns what a Matcher does where these routes are to be tried in turn."""
    content = b"".join(field(RouteList, "routes", route) for route in routes)
    action = TypedExtensionConfig(name="routes", typed_config=pack_bytes(RouteList, content))
    return bytes(Matcher.OnMatch(action=action).SerializeToString())
