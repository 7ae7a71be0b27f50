"""Whether gateways take a route, and what keeps them from it.

A condition that was written for an older generation counts as not there yet; one that names no generation always
counts. Entries of a route's status that say nothing of acceptance come from policy controllers and are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator

from isvc.kube.conditions import find, is_condition_true
from isvc.kube.objects import Object, dig, generation_of, name_of, namespace_of
from isvc.serving.thirdparty import GATEWAYS

_UNREPORTED = {
    "type": "ResolvedRefs",
    "status": "Unknown",
    "reason": "ConditionMissing",
    "message": "ResolvedRefs condition not yet reported by gateway controller",
}


def is_gateway_programmed(gateway: Object) -> bool:
    return is_condition_true(gateway, "Programmed")


def is_current(condition: Object, obj: Object) -> bool:
    """Returns whether it is true, and of this generation."""
    seen = condition.get("observedGeneration") or 0
    return condition.get("status") == "True" and not 0 < seen < generation_of(obj)


def is_same_parent(one: Object, other: Object, namespace: str) -> bool:
    """Returns whether two references of routes of a namespace mean the same gateway, listener and port."""
    return _parent(one, namespace) == _parent(other, namespace)


def route_problem(route: Object) -> str | None:
    """Returns what keeps a route from being ready, in one line; None when nothing does."""
    title = f"{namespace_of(route)}/{name_of(route)}"
    specified = dig(route, "spec", "parentRefs") or ()
    if not specified:
        return f"{title}: has no parentRefs, so no gateway takes it; refer to a Gateway"
    for condition in _conditions(route):
        if not is_current(condition, route):
            status, reason = condition.get("status", ""), condition.get("reason", "")
            return f'{title}: "{status}" (reason "{reason}", message "{condition.get("message", "")}")'
    answered = [parent.get("parentRef") or {} for parent in _answers(route)]
    for parent in specified:
        if not any(is_same_parent(parent, each, namespace_of(route)) for each in answered):
            return f"{title}: {_no_answer(parent, namespace_of(route))}"
    return None


def _no_answer(parent: Object, namespace: str) -> str:
    gateway = f"{parent.get('namespace') or namespace}/{parent.get('name', '')}"
    listener = f" (listener {parent['sectionName']})" if parent.get("sectionName") else ""
    return (
        f"no controller has accepted the route at Gateway {gateway}{listener} yet; check that the controller of the"
        " gateway's class is running and that a listener allows routes from this namespace"
    )


def _answers(route: Object) -> Iterator[Object]:
    """Yields the entries of the status that gateways wrote."""
    for parent in dig(route, "status", "parents") or ():
        if find(parent.get("conditions") or (), "Accepted") is not None:
            yield parent


def _conditions(route: Object) -> Iterator[Object]:
    for parent in _answers(route):
        for kind in ("Accepted", "ResolvedRefs"):
            yield find(parent["conditions"], kind) or _UNREPORTED


def _parent(reference: Object, namespace: str) -> tuple[str, str, str, str, str, int]:
    return (
        reference.get("name", ""),
        reference.get("group", GATEWAYS.group),
        reference.get("kind", GATEWAYS.kind),
        reference.get("namespace", namespace),
        reference.get("sectionName") or "",
        reference.get("port") or 0,
    )
