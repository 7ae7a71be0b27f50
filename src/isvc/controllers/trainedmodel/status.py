"""The status of a TrainedModel: three things it waits for, and where it answers once they hold."""

from __future__ import annotations

from isvc.kube import conditions
from isvc.kube.conditions import ConditionSet
from isvc.kube.objects import Object, dig, name_of
from isvc.serving import endpoints

SERVICE_READY = "InferenceServiceReady"
MEMORY_AVAILABLE = "MemoryResourceAvailable"
MULTI_MODEL = "IsMMSPredictor"
CONDITIONS = ConditionSet((SERVICE_READY, MEMORY_AVAILABLE, MULTI_MODEL))


def fold_status(model: Object, service: Object, *, fits: bool, now: str) -> Object:
    """The status after looking at the service; the address is written only while everything holds."""
    before = model.get("status") or {}
    edit = CONDITIONS.edit(before.get("conditions") or [], now)
    if conditions.is_true(dig(service, "status", "conditions") or [], "Ready"):
        edit.mark_true(SERVICE_READY)
    else:
        words = "Inference Service needs to be ready before Trained Model can be ready"
        edit.mark_false(SERVICE_READY, "InferenceServiceNotReady", words)
    if endpoints.is_multi_model(dig(service, "spec", "predictor") or {}):
        edit.mark_true(MULTI_MODEL)
    else:
        words = "Inference Service predictor is not configured for multi-model serving"
        edit.mark_false(MULTI_MODEL, "IsNotMMSPredictor", words)
    if fits:
        edit.mark_true(MEMORY_AVAILABLE)
    else:
        words = "Inference Service does not have enough memory resources for Trained Model"
        edit.mark_false(MEMORY_AVAILABLE, "MemoryResourceNotAvailable", words)
    after = {**before, "conditions": edit.result()}
    return {**after, **_addresses(model, service)} if edit.is_happy() else after


def _addresses(model: Object, service: Object) -> Object:
    protocol = endpoints.predictor_protocol(dig(service, "spec", "predictor") or {})
    path = endpoints.predict_path(name_of(model), protocol)
    found: Object = {}
    if url := dig(service, "status", "url"):
        found["url"] = f"{url}{path}"
    if address := dig(service, "status", "address", "url"):
        found["address"] = {"url": f"{address}{path}"}
    return found
