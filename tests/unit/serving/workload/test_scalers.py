"""KEDA and those that it asks: who is away is known by endpoints, or by what KEDA says of a ScaledObject."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from isvc.kube.objects import Object
from isvc.serving.workload.scalers import INTERCEPTOR, OPERATOR, find_away, said_of_scaling, scaling_readiness

CREATED = "2026-01-01T00:00:00Z"
SOON = "2026-01-01T00:00:49Z"
LATER = "2026-01-01T00:00:50Z"


def endpoint_slice(*ready: bool | None) -> Object:
    """One of a Service; Kubernetes leaves an empty one where there are no pods, and may say nothing of an endpoint."""
    return {"endpoints": [{"conditions": {} if each is None else {"ready": each}} for each in ready] or None}


@pytest.mark.parametrize(
    ("slices", "away"),
    [
        ([], False),
        ([endpoint_slice()], True),
        ([endpoint_slice(False), endpoint_slice()], True),
        ([endpoint_slice(False, True)], False),
        ([endpoint_slice(None)], False),
    ],
)
def test_who_has_a_service_and_no_endpoint_is_away(slices: list[Object], away: bool) -> None:
    known = {OPERATOR: slices}
    assert find_away(lambda name: known.get(name, ())) == (frozenset({OPERATOR}) if away else frozenset())


def scaled(*conditions: Object) -> Object:
    metadata = {"name": "iris", "creationTimestamp": CREATED}
    return {"metadata": metadata, "status": {"conditions": [*conditions]}}


READY = {"type": "Ready", "status": "True"}
FAILS = {"type": "Ready", "status": "False", "reason": "TriggerError", "message": "Triggers do not work"}


@pytest.mark.parametrize(
    ("found", "away", "now", "status", "reason"),
    [
        (scaled(READY), (), SOON, "True", ""),
        (scaled(READY), (OPERATOR,), SOON, "False", "KEDAUnavailable"),
        (scaled(READY), (INTERCEPTOR,), SOON, "False", "HTTPAddOnUnavailable"),
        (scaled(FAILS), (), SOON, "False", "ScaledObjectNotReady"),
        (scaled(), (), SOON, "Unknown", "ScaledObjectProgressing"),
        (scaled(), (), LATER, "False", "KEDAUnavailable"),
        ({}, (), LATER, "Unknown", "ScaledObjectProgressing"),
    ],
)
def test_what_is_said_of_it(found: Object, away: Collection[str], now: str, status: str, reason: str) -> None:
    said = scaling_readiness(found, away, now)
    assert (said.status, said.reason) == (status, reason)
    told = said_of_scaling([{"type": "ScalingReady", **said._asdict()}])
    assert (told is not None) is (status == "False")
    assert told is None or (told[0], "; ".join(told[1:])) == (reason, said.message)
