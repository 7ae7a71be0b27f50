"""HTTPRoutes, compiled into rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.patterns import check
from isvc.local.durations import limit
from isvc.local.gateway.endpoints.pools import pool_of
from isvc.local.gateway.routes.rules import (
    Backend,
    Comparison,
    Condition,
    Filters,
    HeaderChange,
    Match,
    Mirror,
    PathKind,
    PathRewrite,
    Redirect,
    Retry,
    Rule,
    refuse,
)

# What the codes of a retry are where it names none: servers that cannot answer now.
_UNAVAILABLE: Final = frozenset((502, 503, 504))


def http_route_rules(route: Object) -> Iterable[Rule]:
    namespace = namespace_of(route)
    origin = f"HTTPRoute {namespace}/{name_of(route)}"
    for rule in dig(route, "spec", "rules") or []:
        backends = tuple(_backend(ref, namespace) for ref in rule.get("backendRefs") or [])
        asked = _filters(rule.get("filters") or [], namespace)
        compiled = Rule(
            Match(),
            backends,
            asked.filters,
            timeout=limit(dig(rule, "timeouts", "request") or ""),
            attempt_timeout=limit(dig(rule, "timeouts", "backendRequest") or ""),
            retry=_retry(rule.get("retry")),
            mirrors=asked.mirrors,
            redirect=asked.redirect,
            refusal=refuse(origin, asked.unsupported, backends, is_redirect=asked.redirect is not None),
            origin=origin,
        )
        for match in rule.get("matches") or [{}]:
            yield replace(compiled, match=_match(match))


def _match(match: Object) -> Match:
    path = match.get("path") or {}
    value = path.get("value") or "/"
    match path.get("type"):
        case "Exact":
            kind = PathKind.EXACT
        case "RegularExpression":
            kind = PathKind.REGEX
            check(value)
        case _:
            kind = PathKind.PREFIX
    headers = tuple(_condition(item["name"].lower(), item) for item in match.get("headers") or [])
    query = tuple(_condition(item["name"], item) for item in match.get("queryParams") or [])
    return Match(kind, value, match.get("method") or "", _first_of_each(headers), _first_of_each(query))


def _condition(name: str, item: Object) -> Condition:
    if item.get("type") == "RegularExpression":
        check(item["value"])
        return Condition(name, Comparison.REGEX, item["value"])
    return Condition(name, Comparison.EXACT, item["value"])


def _first_of_each(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """Returns the conditions without those whose name came before, which the Gateway API ignores."""
    first = {each.name: each for each in reversed(conditions)}
    return tuple(each for each in conditions if first[each.name] is each)


def _backend(ref: Object, namespace: str) -> Backend:
    weight = ref.get("weight")
    return Backend(
        ref.get("namespace") or namespace,
        ref.get("name", ""),
        ref.get("port") or 80,
        1 if weight is None else weight,
        _filters(ref.get("filters") or [], namespace).filters,
        pool_of(ref),
    )


@dataclass(slots=True)
class _Asked:
    """What a list of filters asks for."""

    filters: Filters = field(default_factory=Filters)
    mirrors: tuple[Mirror, ...] = ()
    redirect: Redirect | None = None
    unsupported: str = ""


def _filters(filters: list[Object], namespace: str) -> _Asked:
    asked = _Asked()
    for item in filters:
        match item.get("type"):
            case "RequestHeaderModifier":
                change = _header_change(item.get("requestHeaderModifier") or {})
                asked.filters = replace(asked.filters, request=change)
            case "ResponseHeaderModifier":
                change = _header_change(item.get("responseHeaderModifier") or {})
                asked.filters = replace(asked.filters, response=change)
            case "URLRewrite":
                rewrite = item.get("urlRewrite") or {}
                host, path = rewrite.get("hostname") or "", _path_rewrite(rewrite)
                asked.filters = replace(asked.filters, rewrite_host=host, path=path)
            case "RequestMirror":
                asked.mirrors += (_mirror(item.get("requestMirror") or {}, namespace),)
            case "RequestRedirect":
                asked.redirect = _redirect(item.get("requestRedirect") or {})
            case other:
                asked.unsupported = f"the filter {other}"
    return asked


def _path_rewrite(spec: Object) -> PathRewrite:
    return PathRewrite(dig(spec, "path", "replaceFullPath"), dig(spec, "path", "replacePrefixMatch"))


def _redirect(spec: Object) -> Redirect:
    return Redirect(
        spec.get("statusCode") or 302,
        spec.get("scheme") or "",
        spec.get("hostname") or "",
        spec.get("port"),
        _path_rewrite(spec),
    )


def _mirror(spec: Object, namespace: str) -> Mirror:
    backend = _backend(spec.get("backendRef") or {}, namespace)
    if "percent" in spec:
        return Mirror(backend, spec["percent"] / 100)
    fraction = spec.get("fraction") or {"numerator": 1, "denominator": 1}
    return Mirror(backend, fraction["numerator"] / (fraction.get("denominator") or 100))


def _retry(spec: Object | None) -> Retry:
    if spec is None:
        return Retry()
    attempts = spec.get("attempts")
    backoff = limit(spec.get("backoff") or "") or Retry().backoff
    return Retry(1 if attempts is None else attempts, frozenset(spec.get("codes") or _UNAVAILABLE), backoff)


def _header_change(change: Object) -> HeaderChange:
    def pairs(key: str) -> tuple[tuple[str, str], ...]:
        return tuple((item["name"], item["value"]) for item in change.get(key) or [])

    return HeaderChange(pairs("set"), pairs("add"), tuple(change.get("remove") or []))
