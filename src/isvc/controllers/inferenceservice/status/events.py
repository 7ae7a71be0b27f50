"""Events follow from the difference between two statuses, and from where a reconcile came to a halt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from isvc.controllers.inferenceservice.planned import Stop
from isvc.controllers.inferenceservice.status.edit import READY, STOPPED
from isvc.kube.conditions import find, is_true
from isvc.kube.objects import Object


class Event(NamedTuple):
    type: str
    reason: str
    message: str


def readiness_events(name: str, before: Object, after: Object) -> Iterator[Event]:
    was, now = (status.get("conditions") or () for status in (before, after))
    ready = find(now, READY) or {}
    if is_true(was, READY) and ready.get("status") == "False":
        failed = ", ".join(condition["type"] for condition in now if condition.get("status") == "False")
        yield Event(
            "Warning", "InferenceServiceNotReady", f"InferenceService [{name}] is no longer Ready because of: {failed}"
        )
    elif not is_true(was, READY) and ready.get("status") == "True":
        yield Event("Normal", "InferenceServiceReady", f"InferenceService [{name}] is Ready")


def halt_events(stop: Stop | None) -> Iterator[Event]:
    if stop is not None and stop.stage not in ("shared", "ingress"):
        yield Event("Warning", "InternalError", stop.message)


def virtual_host_events(before: Object, after: Object, *, missing: bool) -> Iterator[Event]:
    """Told once per service: its first complete status is the first to have a Stopped condition."""
    if missing and not find(before.get("conditions") or (), STOPPED) and find(after.get("conditions") or (), STOPPED):
        yield Event(
            "Warning",
            "VirtualServiceCRDNotFound",
            "Istio VirtualService CRD not present; VirtualService reconciliation skipped. "
            "If you do not use Istio, set ingress.disableIstioVirtualHost=true.",
        )
