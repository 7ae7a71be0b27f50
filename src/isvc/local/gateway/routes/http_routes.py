"""HTTPRoutes, and what other kinds become in their form, as rules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.patterns import check
from isvc.local.gateway.endpoints.pools import pool_of
from isvc.local.gateway.routes.rules import Backend, Mirror, Refusal, Rule

_FILTERS: Final = {"RequestHeaderModifier", "ResponseHeaderModifier", "URLRewrite", "RequestMirror", "RequestRedirect"}

Refuse = Callable[[Object], str]
"""Returns why a backend may not be named, "" if it may."""


def http_route_rules(
    route: Object, hosts: Collection[str], refused: Refuse = lambda reference: ""
) -> Iterable[tuple[str, Rule]]:
    """Yields the rules of each host; requests for a backend that is refused are answered with the reason."""
    origin = f"HTTPRoute {namespace_of(route)}/{name_of(route)}"
    for spec in dig(route, "spec", "rules") or []:
        for rule in rules_of(origin, namespace_of(route), spec, refused):
            yield from ((host, rule) for host in hosts)


def rules_of(origin: str, namespace: str, spec: Object, refused: Refuse = lambda reference: "") -> Iterable[Rule]:
    """Yields a rule for each match of an HTTPRouteRule. Raises BadPattern for an expression that is none."""
    backends = tuple(_backend(ref, namespace, refused(ref)) for ref in spec.get("backendRefs") or ())
    filters = spec.get("filters") or ()
    mirrors = tuple(_mirror(each["requestMirror"], namespace) for each in filters if each["type"] == "RequestMirror")
    refusal = _refuse(origin, spec, backends)
    for match in spec.get("matches") or [{}]:
        conditions = {
            "headers": _first_of_each(match.get("headers") or (), str.lower),
            "queryParams": _first_of_each(match.get("queryParams") or (), str),
        }
        for tested in (match.get("path") or {}, *(each for found in conditions.values() for each in found)):
            if tested.get("type") == "RegularExpression":
                check(tested["value"])
        yield Rule(origin, {**match, **conditions}, spec, backends, mirrors, refusal)


def _refuse(origin: str, spec: Object, backends: tuple[Backend, ...]) -> Refusal | None:
    """Returns why a rule cannot be followed, if it cannot: it asks for what is not there, or leads nowhere."""
    kinds = [each["type"] for each in spec.get("filters") or ()]
    unknown = [f"the filter {kind}" for kind in kinds if kind not in _FILTERS]
    if unsupported := spec.get("unsupported") or next(iter(unknown), ""):
        return Refusal(500, f"{origin} asks for {unsupported}, which this gateway does not have")
    if "RequestRedirect" in kinds:
        return None
    if not backends:
        return Refusal(500, f"{origin} names no backend")
    if not any(backend.weight for backend in backends):
        return Refusal(500, f"{origin} gives every backend the weight 0")
    return None


def _first_of_each(conditions: Iterable[Object], fold: Callable[[str], str]) -> list[Object]:
    """Returns the conditions without those whose name came before, which the Gateway API ignores."""
    found: dict[tuple[str, bool], Object] = {}
    for each in conditions:
        found.setdefault((fold(each["name"]), "not" in each), each)
    return list(found.values())


def _backend(ref: Object, namespace: str, refusal: str = "") -> Backend:
    weight = ref.get("weight")
    return Backend(
        ref.get("namespace") or namespace,
        ref.get("name", ""),
        ref.get("port") or 80,
        1 if weight is None else weight,
        tuple(ref.get("filters") or ()),
        pool_of(ref),
        refusal,
    )


def _mirror(spec: Object, namespace: str) -> Mirror:
    backend = _backend(spec.get("backendRef") or {}, namespace)
    if "percent" in spec:
        return Mirror(backend, spec["percent"] / 100)
    fraction = spec.get("fraction") or {"numerator": 1, "denominator": 1}
    return Mirror(backend, fraction["numerator"] / (fraction.get("denominator") or 100))
