"""Whether those are there on whom a service relies that sleeps: KEDA, the interceptor of its HTTP add-on, Prometheus.

KEDA's operator and the interceptor are known by the endpoints of their Services, in whatever namespace: one that has
none is away. Where there is no Service of that name nothing is known. What keeps KEDA from asking Prometheus, or the
add-on, KEDA says itself in the ScaledObject.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from isvc.kube.conditions import FALSE, TRUE, UNKNOWN, conditions_of, find
from isvc.kube.objects import Object, dig, labels_of, name_of
from isvc.kube.resource import SERVICE_NAME_LABEL
from isvc.kube.timestamps import seconds_between
from isvc.serving.workload.readiness import Readiness

OPERATOR: Final = "keda-operator"
INTERCEPTOR: Final = "keda-add-ons-http-interceptor-proxy"
SELECTOR: Final = f"{SERVICE_NAME_LABEL} in ({INTERCEPTOR},{OPERATOR})"
INDEX: Final = "scaler"
PATIENCE_SECONDS: Final = 50.0
"""How long KEDA may take to look at a new ScaledObject."""
_NO_KEDA: Final = "KEDAUnavailable"
NO_INTERCEPTOR: Final = "HTTPAddOnUnavailable"
NOT_LOOKED_AT: Final = "ScaledObjectProgressing"
_NOT_READY: Final = "ScaledObjectNotReady"
SCALING_READY: Final = "ScalingReady"


def scaler_of_slice(endpoint_slice: Object) -> Iterable[str]:
    """Yields the index under which the EndpointSlices of both are found."""
    name = labels_of(endpoint_slice).get(SERVICE_NAME_LABEL)
    if name in (OPERATOR, INTERCEPTOR):
        yield name


def is_away(slices: Iterable[Object]) -> bool:
    """Returns whether a Service has slices, and no endpoint in them that takes requests."""
    found = [*slices]
    endpoints = [endpoint for each in found for endpoint in each.get("endpoints") or ()]
    return bool(found) and not any(dig(each, "conditions", "ready") is not False for each in endpoints)


def availability_changed(before: Object | None, after: Object | None) -> bool:
    """Returns whether an EndpointSlice may tell that one of the two is away, or there again."""
    was, now = (is_away([each]) if each is not None else None for each in (before, after))
    return was is not now and any(scaler_of_slice(after or before or {}))


def find_away(slices_of: Callable[[str], Iterable[Object]]) -> frozenset[str]:
    """Returns those of the two that are away; `slices_of` looks EndpointSlices up by our index."""
    return frozenset(name for name in (OPERATOR, INTERCEPTOR) if is_away(slices_of(name)))


def scaling_readiness(scaled: Object, away: Collection[str], now: str) -> Readiness:
    """Returns whether a ScaledObject scales, and what to do if it does not.

    `away` are those of the two that have no endpoints, as far as they matter to it.
    """
    if OPERATOR in away:
        return _unready(_NO_KEDA, f"no pod of {OPERATOR} is ready", f"repair the Deployment {OPERATOR}")
    if INTERCEPTOR in away:
        what = f"requests lead through KEDA's HTTP add-on, and no pod of {INTERCEPTOR} is ready"
        return _unready(NO_INTERCEPTOR, what, "repair the Deployment of the add-on's interceptor")
    ready = find(conditions_of(scaled), "Ready")
    since = dig(scaled, "metadata", "creationTimestamp")
    if ready is None:
        what = "KEDA has not looked at the ScaledObject"
        if not since or seconds_between(since, now) < PATIENCE_SECONDS:
            return Readiness(UNKNOWN, NOT_LOOKED_AT, f"{what} yet")
        return _unready(_NO_KEDA, what, "install KEDA's operator, or repair it")
    if ready.get("status") == FALSE:
        what = f"KEDA cannot scale by ScaledObject {name_of(scaled)}: {ready.get('message') or ready.get('reason')}"
        remedy = "its events say which trigger fails: see that Prometheus, or KEDA's HTTP add-on, answers"
        return _unready(_NOT_READY, what, remedy)
    return Readiness(TRUE)


def said_of_scaling(conditions: Iterable[Object]) -> tuple[str, str, str] | None:
    """Returns what a service says of this itself: reason, message and remedy; None where it says nothing."""
    found = find(conditions, SCALING_READY) or {}
    if found.get("status") != FALSE or found.get("reason") not in (_NO_KEDA, NO_INTERCEPTOR, _NOT_READY):
        return None
    message, _, remedy = str(found.get("message")).rpartition("; ")
    return found["reason"], message, remedy


def _unready(reason: str, what: str, remedy: str) -> Readiness:
    return Readiness(FALSE, reason, f"{what}; {remedy}")
