"""Model formats that once had a field of their own (`predictor.sklearn`), and how such a field becomes `model`.

The defaulter rewrites them before they are stored (`api/defaults`), and controllers read services through it, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from isvc.api.protocols import Protocol
from isvc.kube.objects import Object

MODEL_FORMAT = "modelFormat"
"""Annotation that repeats the model's format, for people who list services by it."""

FRAMEWORKS: tuple[str, ...] = (
    "sklearn",
    "tensorflow",
    "xgboost",
    "pytorch",
    "triton",
    "onnx",
    "huggingface",
    "pmml",
    "lightgbm",
    "paddle",
)
"""Fields of the predictor that name a format, in the order in which the defaulter looks at them."""

FRAMEWORK_PROTOCOLS: Mapping[str, Protocol] = {"triton": Protocol.V2, "onnx": Protocol.V2, "huggingface": Protocol.V2}
"""What a framework's server speaks when the field says nothing; v1 otherwise."""

FORMAT_PROTOCOLS: Mapping[str, Protocol] = {"triton": Protocol.V2, "vLLM": Protocol.V2}
"""What a model's server speaks when `model` says nothing; v1 otherwise."""


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
