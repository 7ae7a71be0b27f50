"""Events of an InferenceService beside those of its readiness."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.controllers.inferenceservice.planned import Stage, Stop
from isvc.controllers.inferenceservice.status.edit import STOPPED
from isvc.kube.conditions import find
from isvc.kube.objects import Object
from isvc.serving.events import Event


def halt_events(stop: Stop | None) -> Iterator[Event]:
    if stop is not None and stop.stage not in (Stage.SHARED, Stage.INGRESS):
        yield Event("Warning", "InternalError", stop.message)


def virtual_host_events(before: Object, after: Object, *, missing: bool) -> Iterator[Event]:
    """Reported once per service: its first complete status is the first to have a Stopped condition."""
    if missing and not find(before.get("conditions") or (), STOPPED) and find(after.get("conditions") or (), STOPPED):
        yield Event(
            "Warning",
            "VirtualServiceCRDNotFound",
            "Istio VirtualService CRD not present; VirtualService reconciliation skipped. "
            "If you do not use Istio, set ingress.disableIstioVirtualHost=true.",
        )
