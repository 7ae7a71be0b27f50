"""Ingresses, HTTPRoutes and VirtualServices as one table: the rules of each host, in the order in which they count.

Precedence is that of the Gateway API: an exact host before a wildcard, an exact path before a longer prefix before a
regular expression, then a method, then more header conditions before fewer, then query parameters, then the older
object. A VirtualService has its rules tried in their own order, before those of other kinds for the same host.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from isvc.api.resources import INFERENCE_GRAPHS
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.patterns import BadPattern
from isvc.kube.resource import INGRESSES
from isvc.local.gateway.names import cluster_name, is_host
from isvc.local.gateway.routes.http_routes import http_route_rules
from isvc.local.gateway.routes.ingresses import ingress_rules
from isvc.local.gateway.routes.local_gateway import led_on, sent_on_as
from isvc.local.gateway.routes.rules import Backend, Match, Rule
from isvc.local.gateway.routes.virtual_services import virtual_service_rules
from isvc.serving.thirdparty import HTTP_ROUTES, VIRTUAL_SERVICES

log = logging.getLogger("isvc.gateway")

ANY: Final = ""
"""The host of rules that are for every host."""


class Source(NamedTuple):
    """The object that rules come from."""

    kind: str
    key: Key


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A rule of a host, and its place among the others."""

    host: str
    rule: Rule
    place: tuple[object, ...]


class RouteTable:
    def __init__(self) -> None:
        self._entries: dict[Source, list[Entry]] = {}
        self._hosts: dict[str, list[Entry]] = {}
        self._domains: set[str] = set()
        self._led_from: dict[str, set[str]] = {}  # by the host that they are led on to
        self.changed: set[str] = set()  # hosts, for whoever keeps what was made of their rules

    def put(self, source: Source, obj: Object | None, compiled: Iterable[tuple[str, Rule]] = ()) -> None:
        """Replaces the rules of an object, which are none for one that is gone."""
        for entry in self._entries.pop(source, ()):
            rules = self._hosts[entry.host]
            rules.remove(entry)
            if not rules:
                del self._hosts[entry.host]
                self._domains.discard(entry.host)
            self._note(entry.host)
        if obj is None:
            return
        entries = [
            Entry(host.lower(), rule, _place(source, obj, rule, number))
            for number, (host, rule) in enumerate(compiled)
            if not host or is_host(host.lower())
        ]
        self._entries[source] = entries
        for entry in entries:
            rules = self._hosts.setdefault(entry.host, [])
            rules.append(entry)
            rules.sort(key=lambda each: each.place)
            if entry.host.startswith("*."):
                self._domains.add(entry.host)
            if (behind := sent_on_as(entry.rule)) is not None:
                self._led_from.setdefault(behind, set()).add(entry.host)
            self._note(entry.host)

    def put_ingress(self, key: Key, obj: Object | None) -> None:
        self.put(Source(INGRESSES.kind, key), obj, _unless_broken(obj, ingress_rules))

    def put_http_route(self, key: Key, obj: Object | None, hosts: Collection[str]) -> None:
        """`hosts` are those that the route is served for."""
        self.put(Source(HTTP_ROUTES.kind, key), obj, _pairs(obj, hosts))

    def put_graph(self, key: Key, obj: Object | None, routes: Iterable[tuple[Object, Collection[str]]]) -> None:
        """`routes` are those by which the gateway leads to a graph, each with its hosts."""
        pairs = [pair for route, hosts in routes for pair in _pairs(route, hosts)]
        self.put(Source(INFERENCE_GRAPHS.kind, key), obj, pairs)

    def put_virtual_service(self, key: Key, obj: Object | None) -> None:
        self.put(Source(VIRTUAL_SERVICES.kind, key), obj, _unless_broken(obj, virtual_service_rules))

    @property
    def hosts(self) -> Collection[str]:
        """Those that rules are for: names, domains as `*.example.com`, ANY."""
        return self._hosts.keys()

    def names(self, host: str) -> bool:
        """Whether a route is for this host or its domain, not just for any."""
        return host in self._hosts or any(_is_below(host, domain) for domain in self._domains)

    def rules(self, host: str) -> list[Rule]:
        """Returns the rules for a host or domain, those of wider domains last. The first that matches counts."""
        wider = sorted((domain for domain in self._domains if _is_below(host, domain)), key=len, reverse=True)
        return [rule for each in (host, *wider) for rule in self._of(each)]

    def _of(self, host: str) -> Iterable[Rule]:
        for entry in self._hosts.get(host, ()):
            behind = sent_on_as(entry.rule)
            if behind is None:
                yield entry.rule
            else:
                found = tuple(each.rule for each in self._hosts.get(behind, ()))
                yield from led_on(entry.rule, behind, found or service_rules(behind))

    def _note(self, host: str) -> None:
        self.changed |= {host, *self._led_from.get(host, ())}


@lru_cache(maxsize=4096)
def service_rules(host: str) -> tuple[Rule, ...]:
    """Returns the rule by which a Service is reached under its name in the cluster."""
    service = cluster_name(host)
    if service is None:
        return ()
    name, namespace = service
    return (Rule(Match(), (Backend(namespace, name, 80),), origin=f"Service {namespace}/{name}"),)


def _pairs(route: Object | None, hosts: Collection[str]) -> list[tuple[str, Rule]]:
    return [(host, rule) for rule in _unless_broken(route, http_route_rules) for host in hosts]


_T = TypeVar("_T")


def _unless_broken(obj: Object | None, compiled: Callable[[Object], Iterable[_T]]) -> list[_T]:
    """Returns the rules of an object; none of one whose regular expression is none, which must not end all others."""
    if obj is None:
        return []
    try:
        return list(compiled(obj))
    except BadPattern as error:
        log.warning("the routes of %s/%s are left out: %s", namespace_of(obj), name_of(obj), error)
        return []


def _place(source: Source, obj: Object, rule: Rule, number: int) -> tuple[object, ...]:
    age = (dig(obj, "metadata", "creationTimestamp") or "", namespace_of(obj), name_of(obj))
    is_ordered = source.kind == VIRTUAL_SERVICES.kind
    return (0, age, number) if is_ordered else (1, rule.match.rank, age, number)


def _is_below(host: str, domain: str) -> bool:
    return host != domain and host.endswith(domain[1:])
