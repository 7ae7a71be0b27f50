"""Model formats that once had a field of their own in the predictor (`predictor.sklearn`)."""

from __future__ import annotations

from collections.abc import Mapping

from isvc.api.protocols import Protocol

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

FRAMEWORK_PROTOCOLS: Mapping[str, Protocol] = {
    "triton": Protocol.V2,
    "onnx": Protocol.V2,
    "huggingface": Protocol.V2,
}
"""What a framework's server speaks when the field says nothing; v1 otherwise."""

FORMAT_PROTOCOLS: Mapping[str, Protocol] = {"triton": Protocol.V2, "vLLM": Protocol.V2}
"""What a model's server speaks when `model` says nothing; v1 otherwise."""
