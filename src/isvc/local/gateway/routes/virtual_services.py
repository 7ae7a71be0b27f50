"""Istio's VirtualServices, in the form of HTTPRoutes. Of their rules, the first that matches counts.

Gateways and sources that a rule names are not looked at: there is one gateway, and all requests come in there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.patterns import check_replacement
from isvc.local.gateway.names import cluster_name, full_name
from isvc.local.gateway.routes.http_routes import rules_of
from isvc.local.gateway.routes.rules import Rule

_UNSUPPORTED: Final = ("delegate", "directResponse", "fault", "corsPolicy")
_CODES_OF_POLICY: Final[Mapping[str, range | tuple[int, ...]]] = {
    "5xx": range(500, 600),
    "gateway-error": (502, 503, 504),
    "retriable-4xx": (409,),
    "unavailable": (503,),
}
_LITERAL: Final = re.compile(r"\^?((?:(?:[a-z0-9:_-]|\\\.)(?![*?{]))*)")  # how an expression begins
_TYPES: Final = {"exact": "Exact", "prefix": "Prefix", "regex": "RegularExpression"}


def virtual_service_rules(obj: Object) -> Iterable[tuple[str, Rule]]:
    namespace = namespace_of(obj)
    hosts = [_host(host, namespace) for host in dig(obj, "spec", "hosts") or ()]
    for route in dig(obj, "spec", "http") or ():
        for match in route.get("match") or [{}]:
            spec = {**_rule(route, namespace), "matches": [_match(match)], "unsupported": _unsupported(route, match)}
            for rule in rules_of(f"VirtualService {namespace}/{name_of(obj)}", namespace, spec):
                yield from ((host, rule) for host in hosts if _can_be(host, match.get("authority") or {}))


def _can_be(host: str, test: Object) -> bool:
    """Returns whether a request for a host can pass a test of its authority, by what every text begins with that does.

    Each rule of KServe is for one of the hosts of its VirtualService, and one of these is the name that all share.
    """
    regex = test.get("regex") or ""
    literal = _LITERAL.match("" if "|" in regex else regex)
    begins = test.get("exact") or test.get("prefix") or (literal[1].replace("\\", "") if literal else "")
    name, colon, _ = begins.partition(":")
    is_same = full_name(name) == full_name(host)
    return is_same or not host or host.startswith("*") or (not colon and full_name(host).startswith(name))


def _unsupported(route: Object, match: Object) -> str:
    if (match.get("method") or {"exact": ""}).keys() != {"exact"}:
        return "a method that is not given exactly"
    return next((f"`{name}`" for name in _UNSUPPORTED if name in route), "")


def _rule(route: Object, namespace: str) -> Object:
    rule: Object = {
        "backendRefs": [_backend(each, namespace) for each in route.get("route") or ()],
        "filters": [*_header_filters(route), *_rewrite(route.get("rewrite") or {}), *_mirrors(route, namespace)],
        "timeouts": {"request": route.get("timeout"), "backendRequest": dig(route, "retries", "perTryTimeout")},
    }
    if (redirect := route.get("redirect")) is not None:
        rule["filters"].append({"type": "RequestRedirect", "requestRedirect": _redirect(redirect)})
    if attempts := dig(route, "retries", "attempts"):
        codes = _retry_codes(dig(route, "retries", "retryOn") or "gateway-error")
        rule["retry"] = {"attempts": attempts, "codes": codes}
    return rule


def _host(name: str, namespace: str) -> str:
    """Returns the host as routes are looked up: "" for any, without a port, a short name in full."""
    host = name.partition(":")[0]
    if host == "*":
        return ""
    return host if "." in host or host == "localhost" else f"{host}.{namespace}.svc.cluster.local"


def _match(match: Object) -> Object:
    tests = [
        *(match.get("headers") or {}).items(),
        *([(":authority", match["authority"])] if match.get("authority") else []),
    ]
    unwanted = (match.get("withoutHeaders") or {}).items()
    query = (match.get("queryParams") or {}).items()
    return {
        "path": _path(match.get("uri") or {}),
        "method": dig(match, "method", "exact"),
        "headers": [
            *(_condition(name, test) for name, test in tests),
            *({**_condition(name, test), "not": True} for name, test in unwanted),
        ],
        "queryParams": [_condition(name, test) for name, test in query],
    }


def _path(test: Object) -> Object:
    found = _condition("", test or {"prefix": ""})
    return {**found, "type": "LiteralPrefix"} if found["type"] == "Prefix" else found


def _condition(name: str, test: Object) -> Object:
    """Returns a condition of an HTTPRoute; an empty test is for presence."""
    key = next((each for each in _TYPES if each in test), "")
    return {"name": name, "type": _TYPES.get(key, "Present"), "value": test.get(key, "")}


def _backend(route: Object, namespace: str) -> Object:
    destination = route.get("destination") or {}
    host = destination.get("host", "")
    name, found = cluster_name(_host(host, namespace)) or (host, namespace)
    port = dig(destination, "port", "number")
    filters = _header_filters(route)
    return {"name": name, "namespace": found, "port": port, "weight": route.get("weight"), "filters": filters}


def _header_filters(route: Object) -> list[Object]:
    return [
        {"type": f"{side}HeaderModifier", f"{side.lower()}HeaderModifier": _header_change(change)}
        for side in ("Request", "Response")
        if (change := dig(route, "headers", side.lower()))
    ]


def _header_change(change: Object) -> Object:
    pairs = {
        key: [{"name": name, "value": value} for name, value in (change.get(key) or {}).items()]
        for key in ("set", "add")
    }
    return {**pairs, "remove": change.get("remove")}


def _rewrite(rewrite: Object) -> Iterable[Object]:
    """Yields the filter that puts another path in place of the prefix that matched, or of the whole that did."""
    path: Object = {}
    if pattern := rewrite.get("uriRegexRewrite"):
        check_replacement(pattern["match"], pattern["rewrite"])
        path = {"type": "ReplaceRegexMatch", "replaceRegexMatch": pattern}
    elif "uri" in rewrite:
        path = {"type": "ReplacePrefixMatch", "replacePrefixMatch": rewrite["uri"]}
    if rewrite:
        yield {"type": "URLRewrite", "urlRewrite": {"hostname": rewrite.get("authority"), "path": path}}


def _mirrors(route: Object, namespace: str) -> Iterable[Object]:
    single = {"destination": route.get("mirror"), "percentage": route.get("mirrorPercentage")}
    for each in (*([single] if route.get("mirror") else ()), *(route.get("mirrors") or ())):
        percent = dig(each, "percentage", "value")
        share = {"backendRef": _backend(each, namespace), "percent": 100 if percent is None else percent}
        yield {"type": "RequestMirror", "requestMirror": share}


def _redirect(redirect: Object) -> Object:
    path = {"path": {"type": "ReplaceFullPath", "replaceFullPath": redirect["uri"]}} if "uri" in redirect else {}
    code = redirect.get("redirectCode") or 301
    host = {"scheme": redirect.get("scheme"), "hostname": redirect.get("authority"), "port": redirect.get("port")}
    return {"statusCode": code, **host, **path}


def _retry_codes(policies: str) -> list[int]:
    codes: set[int] = set()
    for policy in (each.strip() for each in policies.split(",")):
        codes.update((int(policy),) if policy.isdigit() else _CODES_OF_POLICY.get(policy, ()))
    return sorted(codes)
