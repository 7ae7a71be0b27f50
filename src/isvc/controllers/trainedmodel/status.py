"""The status of a TrainedModel: three things it waits for, and where it answers once they hold."""

from __future__ import annotations

from isvc.api.inferenceservice import InferenceService
from isvc.kube.conditions import TRUE, ConditionSet
from isvc.kube.objects import Object, name_of
from isvc.serving import endpoints

SERVICE_READY = "InferenceServiceReady"
MEMORY_AVAILABLE = "MemoryResourceAvailable"
MULTI_MODEL = "IsMMSPredictor"
CONDITIONS = ConditionSet((SERVICE_READY, MEMORY_AVAILABLE, MULTI_MODEL))


def fold_status(model: Object, service: InferenceService, *, fits: bool, now: str) -> Object:
    """The status after looking at the service; the address is written only while everything holds."""
    before = model.get("status") or {}
    edit = CONDITIONS.edit(before.get("conditions") or [], now)
    if any(condition.type == "Ready" and condition.status == TRUE for condition in service.status.conditions):
        edit.mark_true(SERVICE_READY)
    else:
        message = "Inference Service needs to be ready before Trained Model can be ready"
        edit.mark_false(SERVICE_READY, "InferenceServiceNotReady", message)
    if endpoints.is_multi_model(service.spec.predictor):
        edit.mark_true(MULTI_MODEL)
    else:
        message = "Inference Service predictor is not configured for multi-model serving"
        edit.mark_false(MULTI_MODEL, "IsNotMMSPredictor", message)
    if fits:
        edit.mark_true(MEMORY_AVAILABLE)
    else:
        message = "Inference Service does not have enough memory resources for Trained Model"
        edit.mark_false(MEMORY_AVAILABLE, "MemoryResourceNotAvailable", message)
    after = {**before, "conditions": edit.result()}
    return {**after, **_addresses(model, service)} if edit.is_happy() else after


def unreadable(before: Object, message: str, now: str) -> Object:
    """The model, its service or a model beside it is malformed."""
    edit = CONDITIONS.edit(before.get("conditions") or [], now)
    edit.mark_false(SERVICE_READY, "InvalidSpec", message)
    return {**before, "conditions": edit.result()}


def _addresses(model: Object, service: InferenceService) -> Object:
    protocol = endpoints.predictor_protocol(service.spec.predictor)
    path = endpoints.predict_path(name_of(model), protocol)
    found: Object = {}
    if service.status.url:
        found["url"] = f"{service.status.url}{path}"
    if service.status.address and service.status.address.url:
        found["address"] = {"url": f"{service.status.address.url}{path}"}
    return found
