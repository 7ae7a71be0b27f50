"""Turns the old framework fields (`predictor.sklearn`) into `model`.

The defaulter rewrites them before they are stored. What was stored before there was a defaulter has the old form
until somebody writes it again, so controllers read services through here, too.
"""

from __future__ import annotations

from isvc.api.formats import FRAMEWORK_PROTOCOLS, FRAMEWORKS
from isvc.kube.objects import Object, dig


def with_model(service: Object) -> Object:
    """Returns the service with `model` for a framework field; itself if it has none, or is not of its type."""
    predictor = dig(service, "spec", "predictor")
    if not isinstance(predictor, dict):
        return service
    current = model_for_framework(predictor)
    if current is predictor:
        return service
    return {**service, "spec": {**service["spec"], "predictor": current}}


def model_for_framework(predictor: Object) -> Object:
    """Turns the first framework field of a predictor into `model`, in its place; returns it as it is without one."""
    framework = next((name for name in FRAMEWORKS if isinstance(predictor.get(name), dict)), None)
    if framework is None:
        return predictor
    model = {name: value for name, value in predictor[framework].items() if value != []}
    model["modelFormat"] = {"name": framework}
    if framework in FRAMEWORK_PROTOCOLS and model.get("protocolVersion") is None:
        model["protocolVersion"] = FRAMEWORK_PROTOCOLS[framework].value
    kept = {name: value for name, value in predictor.items() if name != framework}
    return {**kept, "model": model}
