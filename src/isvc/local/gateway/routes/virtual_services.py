"""Istio's VirtualServices, compiled into rules and their hosts. Of its rules, the first that matches counts.

Gateways and sources that a rule names are not looked at: there is one gateway, and all requests come in there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.patterns import check, check_replacement
from isvc.local.durations import limit
from isvc.local.gateway.names import cluster_name
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

_UNSUPPORTED: Final = ("delegate", "directResponse", "fault", "corsPolicy")
_CODES_OF_POLICY: Final[Mapping[str, range | tuple[int, ...]]] = {
    "5xx": range(500, 600),
    "gateway-error": (502, 503, 504),
    "retriable-4xx": (409,),
    "unavailable": (503,),
}


def virtual_service_rules(obj: Object) -> Iterable[tuple[str, Rule]]:
    namespace = namespace_of(obj)
    hosts = [_host(host, namespace) for host in dig(obj, "spec", "hosts") or ()]
    origin = f"VirtualService {namespace}/{name_of(obj)}"
    for route in dig(obj, "spec", "http") or ():
        compiled = _rule(route, namespace, origin)
        for match in route.get("match") or [{}]:
            refusal = compiled.refusal or refuse(origin, _unsupported(match))
            rule = replace(compiled, match=_match(match), refusal=refusal)
            for host in hosts:
                yield host, rule


def _rule(route: Object, namespace: str, origin: str) -> Rule:
    rewrite = route.get("rewrite") or {}
    retries = route.get("retries") or {}
    backends = tuple(_destination(each, namespace) for each in route.get("route") or ())
    unsupported = next((f"`{name}`" for name in _UNSUPPORTED if name in route), "")
    return Rule(
        Match(),
        backends,
        Filters(
            _header_change(dig(route, "headers", "request")),
            _header_change(dig(route, "headers", "response")),
            rewrite.get("authority") or "",
            _path_rewrite(rewrite),
        ),
        timeout=limit(route.get("timeout") or ""),
        attempt_timeout=limit(retries.get("perTryTimeout") or ""),
        retry=Retry(retries.get("attempts") or 0, _retry_codes(retries.get("retryOn") or "gateway-error")),
        mirrors=tuple(_mirrors(route, namespace)),
        redirect=_redirect(route.get("redirect")),
        refusal=refuse(origin, unsupported, backends, is_redirect="redirect" in route),
        origin=origin,
    )


def _host(name: str, namespace: str) -> str:
    """Returns the host as routes are looked up: "" for any, without a port, a short name in full."""
    host = name.partition(":")[0]
    if host == "*":
        return ""
    return host if "." in host or host == "localhost" else f"{host}.{namespace}.svc.cluster.local"


def _match(match: Object) -> Match:
    kind, path = _uri(match.get("uri") or {})
    wanted, unwanted = match.get("headers") or {}, match.get("withoutHeaders") or {}
    conditions = [_condition(name.lower(), test) for name, test in wanted.items()]
    conditions += [_condition(name.lower(), test, must_not=True) for name, test in unwanted.items()]
    if authority := match.get("authority"):
        conditions.append(_condition(":authority", authority))
    query = tuple(_condition(name, test) for name, test in (match.get("queryParams") or {}).items())
    return Match(kind, path, dig(match, "method", "exact") or "", tuple(conditions), query)


def _unsupported(match: Object) -> str:
    return "a method that is not given exactly" if (match.get("method") or {"exact": ""}).keys() != {"exact"} else ""


def _uri(test: Object) -> tuple[PathKind, str]:
    if "exact" in test:
        return PathKind.EXACT, test["exact"]
    if "regex" in test:
        check(test["regex"])
        return PathKind.REGEX, test["regex"]
    return PathKind.LITERAL_PREFIX, test.get("prefix", "")


def _condition(name: str, test: Object, *, must_not: bool = False) -> Condition:
    """An empty test is for presence."""
    for comparison in (Comparison.EXACT, Comparison.PREFIX, Comparison.REGEX):
        if comparison.value in test:
            value = test[comparison.value]
            if comparison is Comparison.REGEX:
                check(value)
            return Condition(name, comparison, value, must_not)
    return Condition(name, Comparison.PRESENT, "", must_not)


def _destination(route: Object, namespace: str) -> Backend:
    destination = route.get("destination") or {}
    name, found = cluster_name(_host(destination.get("host", ""), namespace)) or (
        destination.get("host", ""),
        namespace,
    )
    weight = route.get("weight")
    changes = Filters(
        _header_change(dig(route, "headers", "request")), _header_change(dig(route, "headers", "response"))
    )
    return Backend(found, name, dig(destination, "port", "number") or 80, 1 if weight is None else weight, changes)


def _path_rewrite(rewrite: Object) -> PathRewrite:
    """In place of the prefix that matched, or of the whole path that did."""
    if pattern := rewrite.get("uriRegexRewrite"):
        check_replacement(pattern["match"], pattern["rewrite"])
        return PathRewrite(found=(pattern["match"], pattern["rewrite"]))
    return PathRewrite(prefix=rewrite.get("uri"))


def _mirrors(route: Object, namespace: str) -> Iterable[Mirror]:
    if mirror := route.get("mirror"):
        percent = dig(route, "mirrorPercentage", "value")
        yield Mirror(_destination({"destination": mirror}, namespace), 1.0 if percent is None else percent / 100)
    for each in route.get("mirrors") or ():
        percent = dig(each, "percentage", "value")
        yield Mirror(_destination(each, namespace), 1.0 if percent is None else percent / 100)


def _redirect(spec: Object | None) -> Redirect | None:
    if spec is None:
        return None
    path = PathRewrite(full=spec.get("uri"))
    return Redirect(
        spec.get("redirectCode") or 301, spec.get("scheme") or "", spec.get("authority") or "", spec.get("port"), path
    )


def _retry_codes(policies: str) -> frozenset[int]:
    codes: set[int] = set()
    for policy in (each.strip() for each in policies.split(",")):
        codes.update((int(policy),) if policy.isdigit() else _CODES_OF_POLICY.get(policy, ()))
    return frozenset(codes)


def _header_change(change: Object | None) -> HeaderChange:
    change = change or {}
    added, removed = change.get("add") or {}, change.get("remove") or ()
    return HeaderChange(tuple((change.get("set") or {}).items()), tuple(added.items()), tuple(removed))
