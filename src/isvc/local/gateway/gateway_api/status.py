"""What the gateway reports about GatewayClasses, Gateways and HTTPRoutes, in the words of the Gateway API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from isvc.kube.conditions import stamp
from isvc.kube.objects import Key, Object, dig, generation_of, namespace_of
from isvc.kube.resource import Resource
from isvc.local.gateway.gateway_api.attachment import CONTROLLER, Attachment, Gateways, parent_key
from isvc.local.gateway.gateway_api.references import Reason, backend_kind, backend_references
from isvc.serving.thirdparty import HTTP_ROUTES

Exists = Callable[[Resource, str, str], bool]
"""Whether an object of this kind is there, by namespace and name."""
_HTTP_ROUTE: Final = {"group": HTTP_ROUTES.group, "kind": HTTP_ROUTES.kind}


def class_status(gateway_class: Object, now: str) -> Object:
    accepted = condition("Accepted", gateway_class, None, "isvc up implements this class")
    return {"conditions": stamp_all([accepted], dig(gateway_class, "status", "conditions"), now)}


def gateway_status(gateway: Object, gateways: Gateways, attached: Sequence[str], now: str) -> Object:
    """`attached` has the name of a listener once for each route that is attached to it."""
    before = {each["name"]: each for each in dig(gateway, "status", "listeners") or ()}
    listeners = [
        {
            "name": each["name"],
            "supportedKinds": [_HTTP_ROUTE],
            "attachedRoutes": attached.count(each["name"]),
            "conditions": stamp_all(
                _listener_conditions(gateway, gateways.listener_problem(each)),
                before.get(each["name"], {}).get("conditions"),
                now,
            ),
        }
        for each in dig(gateway, "spec", "listeners") or ()
    ]
    conditions = stamp_all(_gateway_conditions(gateway, gateways), dig(gateway, "status", "conditions"), now)
    addresses = [{"type": "Hostname", "value": "localhost"}]
    return {"addresses": addresses, "conditions": conditions, "listeners": listeners}


def route_status(route: Object, gateways: Gateways, exists: Exists, now: str) -> Object:
    """Returns the status; what other controllers said about Gateways of theirs is left as it is."""
    before: Sequence[Object] = dig(route, "status", "parents") or ()
    others = [each for each in before if each.get("controllerName") != CONTROLLER]
    ours = [each for each in before if each.get("controllerName") == CONTROLLER]
    unresolved = _unresolved(route, gateways, exists)
    return {"parents": others + [_parent(each, route, unresolved, ours, now) for each in gateways.attachments(route)]}


def _parent(attached: Attachment, route: Object, unresolved: Reason | None, before: list[Object], now: str) -> Object:
    conditions = [
        condition("Accepted", route, attached.problem, "the route is served"),
        condition("ResolvedRefs", route, unresolved, "all backends exist", "ResolvedRefs"),
    ]
    known = next((each["conditions"] for each in before if each.get("parentRef") == attached.parent), None)
    return {"parentRef": attached.parent, "controllerName": CONTROLLER, "conditions": stamp_all(conditions, known, now)}


def _unresolved(route: Object, gateways: Gateways, exists: Exists) -> Reason | None:
    """Returns what is wrong with the first backend that cannot take requests."""
    for reference in backend_references(route):
        if refused := gateways.refuse(route, reference):
            return refused
        resource = backend_kind(reference)
        namespace, name = reference.get("namespace") or namespace_of(route), reference.get("name", "")
        if resource and not exists(resource, namespace, name):
            return Reason("BackendNotFound", f"{resource.kind} {namespace}/{name} does not exist")
    return None


def listeners_of(gateway: Object, gateways: Gateways, route: Object) -> set[str]:
    """Returns the names of the listeners that a route is attached to."""
    attachments = gateways.attachments(route)
    here = (each.listeners for each in attachments if parent_key(route, each.parent) == Key.of(gateway))
    return {listener for listeners in here for listener in listeners}


def _listener_conditions(gateway: Object, problem: Reason | None) -> list[Object]:
    invalid = Reason("Invalid", problem.message) if problem else None
    return [
        condition("Accepted", gateway, problem, "the listener is served"),
        condition("Programmed", gateway, invalid, "the listener takes requests", "Programmed"),
        condition("ResolvedRefs", gateway, None, "the listener refers to nothing", "ResolvedRefs"),
    ]


def _gateway_conditions(gateway: Object, gateways: Gateways) -> list[Object]:
    problems = [gateways.listener_problem(listener) for listener in dig(gateway, "spec", "listeners") or ()]
    unusable = next((problem for problem in problems if problem), None) if all(problems) else None
    refused = Reason("ListenersNotValid", unusable.message) if unusable else None
    invalid = Reason("Invalid", unusable.message) if unusable else None
    message = f"the gateway listens on http://localhost:{gateways.port}"
    return [
        condition("Accepted", gateway, refused, "the Gateway is served"),
        condition("Programmed", gateway, invalid, message, "Programmed"),
    ]


def condition(kind: str, obj: Object, problem: Reason | None, message: str, reason: str = "Accepted") -> Object:
    return {
        "type": kind,
        "status": "False" if problem else "True",
        "reason": problem.reason if problem else reason,
        "message": problem.message if problem else message,
        "observedGeneration": generation_of(obj),
    }


def stamp_all(conditions: list[Object], before: Iterable[Object] | None, now: str) -> list[Object]:
    """Returns conditions with the times at which their statuses changed last."""
    return [stamp(each, before or (), now) for each in conditions]
