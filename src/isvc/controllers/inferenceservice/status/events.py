"""Events of an InferenceService beside those of its readiness."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.controllers.inferenceservice.planned import Stage, Stop
from isvc.controllers.inferenceservice.status.edit import READY, STOPPED
from isvc.engine.events import WARNING, Event
from isvc.kube.conditions import find, is_true
from isvc.kube.objects import Object, dig


def halt_events(stop: Stop | None) -> Iterator[Event]:
    if stop is not None and stop.stage not in (Stage.SHARED, Stage.INGRESS):
        yield Event(WARNING, "InternalError", stop.message)


def update_events(name: str, before: Object, after: Object) -> Iterator[Event]:
    """Reported when a new version cannot load its model while the previous one goes on serving."""
    was, now = (dig(status, "modelStatus", "transitionStatus") for status in (before, after))
    if was != now == "BlockedByFailedLoad" and is_true(after.get("conditions") or (), READY):
        cause = dig(after, "modelStatus", "lastFailureInfo", "message") or "its model server does not start"
        message = f"InferenceService [{name}] cannot be updated, and its previous version goes on serving: {cause}"
        yield Event(WARNING, "ModelLoadFailed", message)


def virtual_host_events(before: Object, after: Object, *, missing: bool) -> Iterator[Event]:
    """Reported once per service: its first complete status is the first to have a Stopped condition."""
    if missing and not find(before.get("conditions") or (), STOPPED) and find(after.get("conditions") or (), STOPPED):
        yield Event(
            WARNING,
            "VirtualServiceCRDNotFound",
            "Istio VirtualService CRD not present; VirtualService reconciliation skipped. "
            "If you do not use Istio, set ingress.disableIstioVirtualHost=true.",
        )
