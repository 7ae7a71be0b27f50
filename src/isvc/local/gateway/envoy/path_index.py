"""Finds the routes for a path without looking at all of them: a thousand services may share one host.

Envoy tries the routes of a virtual host one after the other. Here those that begin with the same path are a list of
their own, under that beginning; each list has everything, in its order, that can match a path which begins so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from envoy.config.route.v3.route_components_pb2 import RouteList
from envoy.type.matcher.v3.http_inputs_pb2 import HttpRequestHeaderMatchInput
from xds.core.v3.extension_pb2 import TypedExtensionConfig
from xds.type.matcher.v3.matcher_pb2 import Matcher

from isvc.local.gateway.envoy.messages import pack

FEW: Final = 32
"""So many routes are faster tried than looked up."""


def index(routes: Sequence[Any]) -> Matcher:
    """Returns a matcher that finds the same route as trying all in turn would."""
    lists = group_by_beginning([beginning(route.match) for route in routes])
    found = {key: [routes[number] for number in numbers] for key, numbers in lists.items()}
    elsewhere = found.pop("", [])
    tree = Matcher.MatcherTree(
        input=TypedExtensionConfig(name="path", typed_config=pack(HttpRequestHeaderMatchInput(header_name=":path"))),
        prefix_match_map=Matcher.MatcherTree.MatchMap(map={key: _tried(each) for key, each in found.items()}),
    )
    return Matcher(matcher_tree=tree, on_no_match=_tried(elsewhere))


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


def _tried(routes: Sequence[Any]) -> Matcher.OnMatch:
    action = TypedExtensionConfig(name="routes", typed_config=pack(RouteList(routes=routes)))
    return Matcher.OnMatch(action=action)
