"""The status of a TrainedModel: three things it waits for, and where it answers once they hold."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.api.inferenceservice import InferenceService
from isvc.controllers.trainedmodel.observe import Observed
from isvc.controllers.trainedmodel.plan import CONDITIONS, MEMORY_AVAILABLE, MULTI_MODEL, SERVICE_READY, problems
from isvc.engine.kind import Folded
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Plan, Stop
from isvc.engine.status import StatusEditor
from isvc.kube.conditions import FALSE, TRUE
from isvc.kube.objects import Object, name_of
from isvc.serving import endpoints

LOOK_AGAIN = 2.0  # for the list of models, which is not watched


def fold(observed: Observed, planned: Plan, outcome: Outcome) -> Folded:
    """Returns the status after looking at the service; the address is written only while everything holds."""
    before, service = observed.status, observed.service
    if service is None:
        return Folded(before)  # the model is on its way out
    edit = StatusEditor(CONDITIONS, before, observed.now)
    stops = {stop.condition: stop for stop in (*problems(observed, service), *_why_unlisted(planned, outcome))}
    for condition in (SERVICE_READY, MULTI_MODEL, MEMORY_AVAILABLE):
        stop = stops.get(condition)
        edit.mark(condition, *((FALSE, stop.reason, stop.message) if stop else (TRUE,)))
    edit.fields["observedGeneration"] = observed.generation
    if edit.conditions.is_happy():
        edit.fields |= _addresses(observed.raw, service)
    waits = planned.stop is not None and planned.stop.waits
    return Folded(edit.result(), again=LOOK_AGAIN if waits else None)


def _why_unlisted(planned: Plan, outcome: Outcome) -> Iterator[Stop]:
    """Yields why a model that could be served is not on the list.

    One that does not exist yet is no reason for complaint.
    """
    if planned.stop is not None and not planned.stop.waits:
        yield planned.stop
    if outcome.refusal is not None:
        yield Stop(outcome.refusal.part, SERVICE_READY, "ReconcileFailed", outcome.refusal.result.message)


def _addresses(model: Object, service: InferenceService) -> Object:
    protocol = endpoints.predictor_protocol(service.spec.predictor)
    path = endpoints.predict_path(name_of(model), protocol)
    found: Object = {}
    if service.status.url:
        found["url"] = f"{service.status.url}{path}"
    if service.status.address and service.status.address.url:
        found["address"] = {"url": f"{service.status.address.url}{path}"}
    return found
