"""Ingresses, HTTPRoutes and VirtualServices as one table: the rules of each host, in the order in which they count.

Precedence is that of the Gateway API: an exact host before a wildcard, an exact path before a longer prefix before a
regular expression, then a method, then more header conditions before fewer, then query parameters, then the older
object. A VirtualService has its rules tried in their own order, before those of other kinds for the same host, and so
has an InterceptorRoute: an Ingress leads to what it is for.
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from isvc.api.resources import INFERENCE_GRAPHS
from isvc.kube.objects import Key, Object, creation_time_of, name_of, namespace_of
from isvc.kube.patterns import BadPattern
from isvc.kube.resource import INGRESSES
from isvc.local.gateway.names import THIS_MACHINE, cluster_name, full_name, is_host, place_of
from isvc.local.gateway.routes.http_routes import Refuse, http_route_rules
from isvc.local.gateway.routes.ingresses import ingress_rules
from isvc.local.gateway.routes.interceptor_routes import interceptor_route_rules
from isvc.local.gateway.routes.local_gateway import resolve, sent_on_as
from isvc.local.gateway.routes.rules import Path, Rule, service_rule
from isvc.local.gateway.routes.virtual_services import virtual_service_rules
from isvc.serving.thirdparty import HTTP_ROUTES, INTERCEPTOR_ROUTES, VIRTUAL_SERVICES

log = logging.getLogger("isvc.gateway")

WRONG_TYPES: Final = (AttributeError, KeyError, TypeError, ValueError)
"""What is raised where an object that no schema checks has a value of another type."""

ANY: Final = ""
"""The host of rules that are for every host."""


class Source(NamedTuple):
    """The object that rules come from."""

    kind: str
    key: Key


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A rule of a host, and its place among the others."""

    host: str  # or the part of one's routes that it is among
    rule: Rule
    place: tuple[object, ...]
    behind: str | None  # the host under which it leads to the local gateway


class RouteTable:
    def __init__(self) -> None:
        self._entries: dict[Source, list[Entry]] = {}
        self._hosts: dict[str, list[Entry]] = {}
        self._domains: set[str] = set()
        self._led_from: dict[str, set[str]] = {}  # by the host that they are led on to
        self.changed: set[str] = set()  # hosts, for whoever keeps what was made of their rules

    def put(self, source: Source, obj: Object | None, compiled: Iterable[tuple[str, Rule]] = ()) -> None:
        """Replaces the rules of an object, which are none for one that is gone.

        Nor has one rules with a broken expression or values of wrong types, so that others go on.
        """
        for entry in self._entries.pop(source, ()):
            rules = self._hosts[entry.host]
            rules.remove(entry)
            if not rules:
                del self._hosts[entry.host]
                self._domains.discard(entry.host)
            self._note(entry.host)
        if obj is None:
            return
        try:
            entries = [
                Entry(_host(host, rule), rule, _place(source, obj, rule, number), sent_on_as(rule))
                for number, (host, rule) in enumerate(compiled)
                if not host or is_host(host.lower())
            ]
        except (*WRONG_TYPES, BadPattern) as error:
            log.warning("the routes of %s/%s are left out: %s", namespace_of(obj), name_of(obj), error)
            return
        self._entries[source] = entries
        for entry in entries:
            rules = self._hosts.setdefault(entry.host, [])
            insort(rules, entry, key=lambda each: each.place)
            if entry.host.startswith("*."):
                self._domains.add(entry.host)
            if entry.behind is not None:
                self._led_from.setdefault(entry.behind, set()).add(entry.host)
            self._note(entry.host)

    def put_ingress(self, key: Key, obj: Object | None) -> None:
        self.put(Source(INGRESSES.kind, key), obj, ingress_rules(obj or {}))

    def put_http_route(
        self, key: Key, obj: Object | None, hosts: Collection[str], refused: Refuse = lambda reference: ""
    ) -> None:
        """`hosts` are those that the route is served for; `refused` says which backends it may not name."""
        self.put(Source(HTTP_ROUTES.kind, key), obj, http_route_rules(obj or {}, hosts, refused))

    def put_graph(self, key: Key, obj: Object | None, routes: Iterable[tuple[Object, Collection[str]]]) -> None:
        """`routes` are those by which the gateway leads to a graph, each with its hosts."""
        pairs = (pair for route, hosts in routes for pair in http_route_rules(route, hosts))
        self.put(Source(INFERENCE_GRAPHS.kind, key), obj, pairs)

    def put_virtual_service(self, key: Key, obj: Object | None) -> None:
        self.put(Source(VIRTUAL_SERVICES.kind, key), obj, virtual_service_rules(obj or {}))

    def put_interceptor_route(self, key: Key, obj: Object | None) -> None:
        self.put(Source(INTERCEPTOR_ROUTES.kind, key), obj, interceptor_route_rules(obj or {}))

    @property
    def hosts(self) -> set[str]:
        """Returns those that rules are for: names, domains as `*.example.com`, ANY."""
        return {host.partition("/")[0] for host in self._hosts}

    def has(self, host: str) -> bool:
        """Returns whether there are rules for a host, or for this part of it alone."""
        return host in self._hosts

    def names(self, host: str) -> bool:
        """Returns whether a route is for this host or its domain, not just for any."""
        host = full_name(host)
        return host in self.hosts or any(_is_below(host, domain) for domain in self._domains)

    def rules_for(self, host: str, path: str) -> list[Rule]:
        """Returns the rules for this host and path, whatever else they ask of a request."""
        places = place_of(full_name(host), f"{path}/"), ANY
        return [rule for each in places for rule in self.rules(each) if Path.of(rule.match).takes(path)]

    def rules(self, host: str) -> list[Rule]:
        """Returns the rules for a host, a part of one, or a domain. Those of wider domains are last.

        The first that matches counts.
        """
        name = host.partition("/")[0]
        wider = sorted((domain for domain in self._domains if _is_below(name, domain)), key=len, reverse=True)
        return [rule for each in (host, *wider) for rule in self._of(each)]

    def _of(self, host: str) -> Iterable[Rule]:
        whole = host.partition("/")[0]
        entries = self._hosts.get(host, [])
        if whole != host:
            entries = sorted([*entries, *self._hosts.get(whole, ())], key=lambda each: each.place)
        for entry in entries:
            if entry.behind is None:
                yield entry.rule
            else:
                found = tuple(each.rule for each in self._hosts.get(entry.behind, ()))
                yield from resolve(entry.rule, entry.behind, found or _service_rules(entry.behind))

    def _note(self, host: str) -> None:
        parts = [each for each in self._hosts if "/" in each] if host == THIS_MACHINE else ()
        self.changed |= {host, *parts, *self._led_from.get(host, ())}


@lru_cache(maxsize=4096)
def _service_rules(host: str) -> tuple[Rule, ...]:
    """Returns the rule by which a Service is reached under its name in the cluster."""
    service = cluster_name(host)
    return (service_rule(service[1], service[0], 80),) if service is not None else ()


def _host(host: str, rule: Rule) -> str:
    return place_of(full_name(host.lower()), Path.of(rule.match).beginning)


def _place(source: Source, obj: Object, rule: Rule, number: int) -> tuple[object, ...]:
    age = (creation_time_of(obj), namespace_of(obj), name_of(obj))
    is_ordered = source.kind in (VIRTUAL_SERVICES.kind, INTERCEPTOR_ROUTES.kind)
    return (0, age, number) if is_ordered else (1, rule.rank, age, number)


def _is_below(host: str, domain: str) -> bool:
    return host != domain and host.endswith(domain[1:])
