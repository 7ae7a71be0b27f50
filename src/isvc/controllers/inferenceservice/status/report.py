"""What a reconcile of an InferenceService comes to: its status, events, and when to look again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from isvc.api.resources import INFERENCE_SERVICES
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import INGRESS, MODE, SHARED, Planned
from isvc.controllers.inferenceservice.status.edit import READY, STOPPED
from isvc.controllers.inferenceservice.status.fold import find_stop, fold_status
from isvc.controllers.inferenceservice.status.revisions import rolled_out
from isvc.engine.events import WARNING, Event, failing, readiness_events
from isvc.engine.kind import Folded
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Stop
from isvc.kube.conditions import UNKNOWN, find, is_true
from isvc.kube.objects import Object, dig, name_of
from isvc.serving.shared_host import LOOK_FOR_MOVE
from isvc.serving.thirdparty import VIRTUAL_SERVICES
from isvc.serving.workload.scalers import SCALING_READY
from isvc.serving.workload.sleep import LOOK_AGAIN, is_waking

LOOK_FOR_KNATIVE: Final = 5.0  # no watch reports that it was installed
WAIT_FOR_MODEL_MESH: Final = 3.0


def fold(observed: Observed, planned: Planned, outcome: Outcome) -> Folded:
    if planned.suspended:
        return Folded(observed.status)
    if observed.awaits_predictor and not observed.is_foreign:
        return Folded(observed.status, again=WAIT_FOR_MODEL_MESH)
    before, status = observed.status, fold_status(observed, planned, outcome)
    if observed.is_foreign:
        return Folded(status)
    stop = find_stop(planned, outcome)
    if stop is not None and stop.part == MODE:
        return Folded(status, (Event(WARNING, "ServerlessModeRejected", stop.message),), LOOK_FOR_KNATIVE)
    missing = VIRTUAL_SERVICES not in observed.served and not observed.config.ingress.disable_istio_virtual_host
    events = (
        *stop_events(stop),
        *virtual_host_events(before, status, missing=missing),
        *update_events(observed.name, before, status),
    )
    return Folded(status, events, again=_again(observed, status))


def _again(observed: Observed, after: Object) -> float | None:
    """The traffic split is planned from the status that is about to be written."""
    if rolled_out(observed.status) != rolled_out(after):
        return 0.0
    scaling = find(after.get("conditions") or (), SCALING_READY) or {}
    if is_waking({"status": after}) or scaling.get("status") == UNKNOWN:
        return LOOK_AGAIN
    return None if observed.host_conflict is None else LOOK_FOR_MOVE


def report_readiness(service: Object, before: Object, after: Object) -> Iterable[Event]:
    return readiness_events(INFERENCE_SERVICES.kind, name_of(service), before, after, because=failing(after))


def stop_events(stop: Stop | None) -> Iterator[Event]:
    if stop is not None and stop.part not in (SHARED, INGRESS):
        yield Event(WARNING, "InternalError", stop.message)


def update_events(name: str, before: Object, after: Object) -> Iterator[Event]:
    """Yields an event when a new version cannot load its model while the previous one goes on serving."""
    was, now = (dig(status, "modelStatus", "transitionStatus") for status in (before, after))
    if was != now == "BlockedByFailedLoad" and is_true(after.get("conditions") or (), READY):
        cause = dig(after, "modelStatus", "lastFailureInfo", "message") or "its model server does not start"
        message = f"InferenceService [{name}] cannot be updated, and its previous version goes on serving: {cause}"
        yield Event(WARNING, "ModelLoadFailed", message)


def virtual_host_events(before: Object, after: Object, *, missing: bool) -> Iterator[Event]:
    """Yields an event once per service: its first complete status is the first to have a Stopped condition."""
    if missing and not find(before.get("conditions") or (), STOPPED) and find(after.get("conditions") or (), STOPPED):
        yield Event(
            WARNING,
            "VirtualServiceCRDNotFound",
            "Istio VirtualService CRD not present; VirtualService reconciliation skipped. "
            "If you do not use Istio, set ingress.disableIstioVirtualHost=true.",
        )
