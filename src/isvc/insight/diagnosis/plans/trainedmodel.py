"""The plan of a TrainedModel, which has no children: a place in the list of models of its service."""

from __future__ import annotations

from isvc.api.codec import DecodeError
from isvc.controllers.trainedmodel.observe import observe
from isvc.controllers.trainedmodel.plan import Observed, Plan, plan
from isvc.controllers.trainedmodel.status import MEMORY_AVAILABLE, MULTI_MODEL, SERVICE_READY
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.diagnosis.plans.intent import Intent, invalid, unreadable
from isvc.insight.diagnosis.snapshot import Snapshot
from isvc.kube.conditions import TRUE, find
from isvc.kube.errors import Forbidden
from isvc.kube.objects import Object
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock, timestamp

#: What would mend each condition, in the order in which they are looked at.
_REMEDIES = {
    MULTI_MODEL: "give its predictor a runtime with multiModel: true, and no storageUri of its own",
    MEMORY_AVAILABLE: "raise resources.limits.memory of its predictor, or lower spec.model.memory of its models",
    SERVICE_READY: "isvc explain says why that service is not ready",
}


async def intent(client: Client, snapshot: Snapshot, model: Object) -> Intent:
    try:
        observed = await observe(snapshot.reader(()), client, model, timestamp(SystemClock().now()))
    except DecodeError as error:
        return invalid(str(error))
    except Forbidden as error:  # the list of models
        return unreadable(error.message)
    return Intent(problem=_problem(observed, plan(observed)))


def _problem(observed: Observed, planned: Plan) -> Finding | None:
    name, parent = observed.model.metadata.name, observed.model.spec.inference_service
    if planned.delete:
        message = f"InferenceService {parent}, which TrainedModel {name} belongs to, does not exist"
        return Finding("ServiceMissing", message, "create it; its controller deletes models that belong to no service")
    conditions = (planned.status or {}).get("conditions") or ()
    for kind, remedy in _REMEDIES.items():
        found = find(conditions, kind)
        if found is not None and found.get("status") != TRUE:
            message = f"InferenceService {parent}: {found.get('message')}"
            return Finding(str(found.get("reason")), message, remedy)
    if planned.waits_for:
        return Finding("NoModelList", planned.waits_for, "wait until the service's controller makes it", Level.WAITS)
    return None
