"""Ingresses, HTTPRoutes and VirtualServices, compiled into one table that answers: which rule, for this request?

Precedence is that of the Gateway API: an exact host before a wildcard, an exact path before a longer prefix before a
regular expression, then a method, then more header conditions before fewer, then query parameters, then the older
object. A VirtualService has its rules tried in their own order, before those of other kinds for the same host.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.patterns import BadPattern
from isvc.local.gateway.routes.http_routes import http_route_rules
from isvc.local.gateway.routes.ingresses import ingress_rules
from isvc.local.gateway.routes.rules import PathKind, Rule
from isvc.local.gateway.routes.virtual_services import virtual_service_rules

log = logging.getLogger("isvc.gateway")


@dataclass(slots=True)
class HostRules:
    """The rules of one host, found by path: how long that takes does not depend on how many services share the host."""

    ordered: list[Rule] = field(default_factory=list)
    exact: dict[str, list[Rule]] = field(default_factory=dict)
    prefixes: dict[str, list[Rule]] = field(default_factory=dict)
    patterns: list[Rule] = field(default_factory=list)
    depth: int = 0  # of the deepest prefix, so that a path of a thousand parts is no more work

    def add(self, rule: Rule) -> None:
        match rule.match.kind:
            case PathKind.EXACT:
                self.exact.setdefault(rule.match.path, []).append(rule)
            case PathKind.PREFIX:
                self.prefixes.setdefault(rule.match.stem, []).append(rule)
                self.depth = max(self.depth, rule.match.stem.count("/"))
            case _:
                self.patterns.append(rule)

    def sort(self) -> None:
        for rules in (*self.exact.values(), *self.prefixes.values(), self.patterns):
            rules.sort(key=lambda rule: rule.match.rank)

    def candidates(self, path: str) -> Iterator[Rule]:
        """Rules whose paths may fit, in order of precedence."""
        yield from self.ordered
        yield from self.exact.get(path, ())
        parts = path.split("/", self.depth + 1)[: self.depth + 1]
        while parts:
            yield from self.prefixes.get("/".join(parts), ())
            parts.pop()
        yield from self.patterns


@dataclass(slots=True)
class RouteTable:
    exact: dict[str, HostRules] = field(default_factory=dict)
    wildcard: dict[str, HostRules] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        ingresses: Iterable[Object],
        http_routes: Iterable[tuple[Object, list[str]]] = (),
        virtual_services: Iterable[Object] = (),
    ) -> RouteTable:
        """HTTPRoutes come with the hosts that they are served for, "" for any."""
        table = cls()
        for obj in sorted(ingresses, key=_age):
            for host, rule in _unless_broken(obj, ingress_rules):
                table._of_host(host).add(rule)
        for obj, hosts in sorted(http_routes, key=lambda pair: _age(pair[0])):
            for rule in _unless_broken(obj, http_route_rules) if hosts else ():
                for host in hosts:
                    table._of_host(host).add(rule)
        for obj in sorted(virtual_services, key=_age):
            for host, rule in _unless_broken(obj, virtual_service_rules):
                table._of_host(host).ordered.append(rule)
        for rules in (*table.exact.values(), *table.wildcard.values()):
            rules.sort()
        return table

    def _of_host(self, host: str) -> HostRules:
        if host.startswith("*."):
            return self.wildcard.setdefault(host[1:].lower(), HostRules())
        if host:
            return self.exact.setdefault(host.lower(), HostRules())
        return self.wildcard.setdefault("", HostRules())

    def find(
        self,
        host: str,
        method: str,
        path: str,
        headers: Mapping[str, str],
        query: Mapping[str, str],
        *,
        by_any_name: bool = True,
    ) -> Rule | None:
        """The rule for a request; with `by_any_name` also one that is for any host."""
        for rules in self._for_host(host, by_any_name=by_any_name):
            for rule in rules.candidates(path):
                if rule.match.accepts(method, path, headers, query):
                    return rule
        return None

    def names(self, host: str) -> bool:
        """Whether a route is for this host or its domain, not just for any."""
        return host in self.exact or any(suffix and host.endswith(suffix) for suffix in self.wildcard)

    def _for_host(self, host: str, *, by_any_name: bool = True) -> Iterable[HostRules]:
        if host in self.exact:
            yield self.exact[host]
        for suffix in sorted(self.wildcard, key=len, reverse=True):
            if host.endswith(suffix) and (suffix or by_any_name):
                yield self.wildcard[suffix]


_T = TypeVar("_T")


def _unless_broken(obj: Object, compiled: Callable[[Object], Iterable[_T]]) -> list[_T]:
    """The rules of an object; none of one with a regular expression that is none, which must not end all others."""
    try:
        return list(compiled(obj))
    except BadPattern as error:
        log.warning("the routes of %s/%s are left out: %s", namespace_of(obj), name_of(obj), error)
        return []


def _age(obj: Object) -> tuple[str, str, str]:
    return (dig(obj, "metadata", "creationTimestamp") or "", namespace_of(obj), name_of(obj))
