"""How ready a Deployment is, or a head and its workers together: their conditions summed up in one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from isvc.kube.conditions import condition_of
from isvc.kube.objects import Object, name_of

AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"
COMPLETE = "NewReplicaSetAvailable"


class Readiness(NamedTuple):
    """A condition that is yet to be named: its status, and why."""

    status: str
    reason: str = ""
    message: str = ""


_ABSENT = Readiness("")


def readiness(deployments: Sequence[Object]) -> Readiness:
    """Decides by weight: a failure to create pods, then unavailability, then how the rollout is going."""
    failure = _condition(deployments, REPLICA_FAILURE)
    if failure.status == "True":
        return failure._replace(status="False")
    available = _condition(deployments, AVAILABLE)
    if available.status == "False":
        return available
    progressing = _condition(deployments, PROGRESSING)
    if progressing.status == "False" and progressing.message:
        return progressing
    if progressing.status == "True":
        # A finished rollout stays "progressing"; only its reason says that it is complete.
        if progressing.reason == COMPLETE:
            return progressing
        if available.status != "True":
            return progressing._replace(status="Unknown")
    return available if available.status == "True" else Readiness("False")


def _condition(deployments: Sequence[Object], kind: str) -> Readiness:
    found = [(name_of(deployment), condition) for deployment in deployments if (condition := _of(deployment, kind))]
    if len(deployments) == 1:
        return found[0][1] if found else _ABSENT
    if len(found) != 2:
        return _ABSENT
    first, second = (condition for _, condition in found)
    whose = ["worker-container: " if "worker" in name else "predictor-container: " for name, _ in found]
    return Readiness(
        status="True" if first.status == second.status == "True" else "False",
        reason=first.reason
        if first.reason == second.reason
        else ", ".join(who + condition.reason for who, (_, condition) in zip(whose, found, strict=True)),
        message=", ".join(who + condition.message for who, (_, condition) in zip(whose, found, strict=True)),
    )


def _of(deployment: Object, kind: str) -> Readiness | None:
    found = condition_of(deployment, kind)
    return Readiness(found.get("status", ""), found.get("reason", ""), found.get("message", "")) if found else None
