"""Ingress and HTTPRoute objects, compiled into one table that answers: which backends, for this request?

Precedence is that of the Gateway API: an exact host before a wildcard, an exact path before a longer prefix before a
regular expression, then more header conditions before fewer, then the older object.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeVar

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import Resource
from isvc.local.gateway.pools import pool_of

log = logging.getLogger("isvc.gateway")


class PathKind(IntEnum):
    """In order of precedence."""

    EXACT = 0
    PREFIX = 1
    REGEX = 2


@dataclass(frozen=True, slots=True)
class Condition:
    """A header or query parameter that has to have a value."""

    name: str
    value: str
    pattern: re.Pattern[str] | None = None

    def holds(self, value: str | None) -> bool:
        if value is None:
            return False
        return bool(self.pattern.search(value)) if self.pattern else value == self.value


@dataclass(frozen=True, slots=True)
class Match:
    kind: PathKind = PathKind.PREFIX
    path: str = "/"
    pattern: re.Pattern[str] | None = None
    method: str = ""
    headers: tuple[Condition, ...] = ()
    query: tuple[Condition, ...] = ()

    @property
    def rank(self) -> tuple[int, ...]:
        return (self.kind, -len(self.path), 0 if self.method else 1, -len(self.headers), -len(self.query))

    def accepts(self, method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
        return (
            self._accepts_path(path)
            and (not self.method or self.method == method)
            and all(condition.holds(headers.get(condition.name)) for condition in self.headers)
            and all(condition.holds(query.get(condition.name)) for condition in self.query)
        )

    def _accepts_path(self, path: str) -> bool:
        if self.kind is PathKind.EXACT:
            return path == self.path
        if self.pattern:
            return bool(self.pattern.match(path))
        stem = self.path.rstrip("/")
        return path == stem or path.startswith(stem + "/") or not stem


@dataclass(frozen=True, slots=True)
class HeaderChange:
    set: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.add or self.remove)


@dataclass(frozen=True, slots=True)
class Filters:
    request: HeaderChange = HeaderChange()
    response: HeaderChange = HeaderChange()
    rewrite_host: str = ""
    rewrite_full: str | None = None
    rewrite_prefix: str | None = None

    def path(self, path: str, match: Match) -> str:
        """The path as the backend sees it."""
        if self.rewrite_full is not None:
            return self.rewrite_full
        if self.rewrite_prefix is not None and match.kind is PathKind.PREFIX:
            rest = path[len(match.path.rstrip("/")) :]
            return (self.rewrite_prefix.rstrip("/") + rest) or "/"
        return path


@dataclass(frozen=True, slots=True)
class Backend:
    namespace: str
    service: str
    port: int | str
    weight: int = 1
    filters: Filters = Filters()
    pool: Resource | None = None  # the kind of InferencePool that the name is of, if it is no Service

    def __str__(self) -> str:
        return f"{self.pool.kind if self.pool else 'Service'} {self.namespace}/{self.service}"


@dataclass(frozen=True, slots=True)
class Rule:
    match: Match
    backends: tuple[Backend, ...]
    filters: Filters = Filters()
    timeout: float | None = None
    origin: str = ""


@dataclass(slots=True)
class HostRules:
    """The rules of one host, found by path: how long that takes does not depend on how many services share the host."""

    exact: dict[str, list[Rule]] = field(default_factory=dict)
    prefixes: dict[str, list[Rule]] = field(default_factory=dict)
    patterns: list[Rule] = field(default_factory=list)
    depth: int = 0  # of the deepest prefix, so that a path of a thousand parts is no more work

    def add(self, rule: Rule) -> None:
        match rule.match.kind:
            case PathKind.EXACT:
                self.exact.setdefault(rule.match.path, []).append(rule)
            case PathKind.PREFIX:
                stem = rule.match.path.rstrip("/")
                self.prefixes.setdefault(stem, []).append(rule)
                self.depth = max(self.depth, stem.count("/"))
            case PathKind.REGEX:
                self.patterns.append(rule)

    def sort(self) -> None:
        for rules in (*self.exact.values(), *self.prefixes.values(), self.patterns):
            rules.sort(key=lambda rule: rule.match.rank)

    def candidates(self, path: str) -> Iterator[Rule]:
        """Rules whose paths may fit, in order of precedence."""
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
    def build(cls, ingresses: Iterable[Object], http_routes: Iterable[tuple[Object, list[str]]] = ()) -> RouteTable:
        """HTTPRoutes come with the hosts that they are served for, "" for any."""
        table = cls()
        for obj in sorted(ingresses, key=_age):
            for host, rule in _unless_broken(obj, _ingress_rules):
                table._add(host, rule)
        for obj, hosts in sorted(http_routes, key=lambda pair: _age(pair[0])):
            for rule in _unless_broken(obj, _http_route_rules) if hosts else ():
                for host in hosts:
                    table._add(host, rule)
        for rules in (*table.exact.values(), *table.wildcard.values()):
            rules.sort()
        return table

    def _add(self, host: str, rule: Rule) -> None:
        if host.startswith("*."):
            self.wildcard.setdefault(host[1:].lower(), HostRules()).add(rule)
        elif host:
            self.exact.setdefault(host.lower(), HostRules()).add(rule)
        else:
            self.wildcard.setdefault("", HostRules()).add(rule)

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
    except re.error as error:
        log.warning("the routes of %s/%s are left out: %s: %s", namespace_of(obj), name_of(obj), error.pattern, error)
        return []


def _age(obj: Object) -> tuple[str, str, str]:
    return (dig(obj, "metadata", "creationTimestamp") or "", namespace_of(obj), name_of(obj))


def _ingress_rules(ingress: Object) -> Iterable[tuple[str, Rule]]:
    namespace = namespace_of(ingress)
    origin = f"Ingress {namespace}/{name_of(ingress)}"
    for rule in dig(ingress, "spec", "rules") or []:
        for path in dig(rule, "http", "paths") or []:
            service = dig(path, "backend", "service") or {}
            port = dig(service, "port", "number") or dig(service, "port", "name") or 80
            backend = Backend(namespace, service.get("name", ""), port)
            kind = PathKind.EXACT if path.get("pathType") == "Exact" else PathKind.PREFIX
            match = _match(kind, path.get("path") or "/", is_regex=path.get("pathType") == "ImplementationSpecific")
            yield rule.get("host", ""), Rule(match, (backend,), origin=origin)


def _match(kind: PathKind, path: str, *, is_regex: bool) -> Match:
    """An ImplementationSpecific path is a prefix, unless it reads like the regular expressions KServe writes."""
    if is_regex and re.search(r"[*+?()\[\]^$\\|]", path):
        return Match(PathKind.REGEX, path, re.compile(path))
    return Match(kind, path)


def _http_route_rules(route: Object) -> Iterable[Rule]:
    namespace = namespace_of(route)
    for rule in dig(route, "spec", "rules") or []:
        backends = tuple(_backend(ref, namespace) for ref in rule.get("backendRefs") or [])
        filters = _filters(rule.get("filters") or [])
        timeout = duration(dig(rule, "timeouts", "request") or dig(rule, "timeouts", "backendRequest") or "")
        for match in rule.get("matches") or [{}]:
            yield Rule(_route_match(match), backends, filters, timeout, f"HTTPRoute {namespace}/{name_of(route)}")


def _route_match(match: Object) -> Match:
    path = match.get("path") or {}
    value = path.get("value") or "/"
    match path.get("type"):
        case "Exact":
            kind, pattern = PathKind.EXACT, None
        case "RegularExpression":
            kind, pattern = PathKind.REGEX, re.compile(value)
        case _:
            kind, pattern = PathKind.PREFIX, None
    headers = tuple(_condition(item, lower=True) for item in match.get("headers") or [])
    query = tuple(_condition(item) for item in match.get("queryParams") or [])
    return Match(kind, value, pattern, match.get("method") or "", headers, query)


def _condition(item: Object, *, lower: bool = False) -> Condition:
    name = item["name"].lower() if lower else item["name"]
    pattern = re.compile(item["value"]) if item.get("type") == "RegularExpression" else None
    return Condition(name, item["value"], pattern)


def _backend(ref: Object, namespace: str) -> Backend:
    weight = ref.get("weight")
    return Backend(
        ref.get("namespace") or namespace,
        ref.get("name", ""),
        ref.get("port") or 80,
        1 if weight is None else weight,
        _filters(ref.get("filters") or []),
        pool_of(ref),
    )


def _filters(filters: list[Object]) -> Filters:
    request, response = HeaderChange(), HeaderChange()
    host, full, prefix = "", None, None
    for item in filters:
        match item.get("type"):
            case "RequestHeaderModifier":
                request = _header_change(item.get("requestHeaderModifier") or {})
            case "ResponseHeaderModifier":
                response = _header_change(item.get("responseHeaderModifier") or {})
            case "URLRewrite":
                rewrite = item.get("urlRewrite") or {}
                host = rewrite.get("hostname") or ""
                full = dig(rewrite, "path", "replaceFullPath")
                prefix = dig(rewrite, "path", "replacePrefixMatch")
    return Filters(request, response, host, full, prefix)


def _header_change(change: Object) -> HeaderChange:
    def pairs(key: str) -> tuple[tuple[str, str], ...]:
        return tuple((item["name"], item["value"]) for item in change.get(key) or [])

    return HeaderChange(pairs("set"), pairs("add"), tuple(change.get("remove") or []))


_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def duration(text: str) -> float | None:
    """Seconds in a Gateway API duration such as `1m30s`; None where there is none, or where zero switches it off."""
    parts = re.findall(r"(\d+)(ms|h|m|s)", text)
    return sum(int(number) * _UNITS[unit] for number, unit in parts) or None
