"""Settings that a few model servers need and users should not have to know: environment, arguments and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from isvc.api.inferenceservice.models import ModelSpec
from isvc.api.protocols import Protocol, rank
from isvc.kube.objects import Object
from isvc.serving.containers import find_by_name, variable
from isvc.serving.runtimes import Runtime

MODEL_DIR: Final = "/mnt/models"
_MLSERVER_CLASSES: Final = {
    "xgboost": "mlserver_xgboost.XGBoostModel",
    "lightgbm": "mlserver_lightgbm.LightGBMModel",
    "mlflow": "mlserver_mlflow.MLflowRuntime",
}
_PROTOCOLS: Final = tuple(Protocol)


def complete(
    model: ModelSpec, runtime: Runtime, service: str, labels: Mapping[str, str]
) -> tuple[ModelSpec, dict[str, str]]:
    """Returns the model as its runtime's server wants it, and the service's labels with those that the server reads."""
    completed, extra = model, dict[str, str]()
    match runtime.server_type:
        case "mlserver":
            completed, extra = _mlserver(model, service)
        case "tritonserver":
            completed = _triton(model)
        case "torchserve":
            completed, extra = _torchserve(model)
    if completed.protocol_version is None:
        first = rank(runtime.spec.protocol_versions)
        protocol = _PROTOCOLS[first - 1].value if first <= len(_PROTOCOLS) else ""
        completed = msgspec.structs.replace(completed, protocol_version=protocol)
    return msgspec.structs.replace(completed, runtime=runtime.name), {**labels, **extra}


def _mlserver(model: ModelSpec, service: str) -> tuple[ModelSpec, dict[str, str]]:
    if model.storage_uri is None and model.storage is None:
        wanted = [variable("MLSERVER_LOAD_MODELS_AT_STARTUP", "false")]
    else:
        wanted = [variable("MLSERVER_MODEL_NAME", service), variable("MLSERVER_MODEL_URI", MODEL_DIR)]
    env: list[Object] = list(model.container.get("env") or [])
    env += [entry for entry in wanted if find_by_name(env, entry["name"]) is None]
    completed = msgspec.structs.replace(
        model, protocol_version=model.protocol_version or Protocol.V2.value, container={**model.container, "env": env}
    )
    return completed, {"modelClass": _MLSERVER_CLASSES.get(model.model_format.name, "mlserver_sklearn.SKLearnModel")}


def _triton(model: ModelSpec) -> ModelSpec:
    container = model.container
    if model.storage_uri is None and model.storage is None:
        container = {**container, "args": [*(container.get("args") or ()), "--model-control-mode=explicit"]}
    protocol = model.protocol_version or Protocol.V2.value
    return msgspec.structs.replace(model, protocol_version=protocol, container=container)


def _torchserve(model: ModelSpec) -> tuple[ModelSpec, dict[str, str]]:
    protocol = model.protocol_version or Protocol.V1.value
    env = [*(model.container.get("env") or ()), variable("PROTOCOL_VERSION", protocol)]
    completed = msgspec.structs.replace(model, protocol_version=protocol, container={**model.container, "env": env})
    is_v2 = protocol in (Protocol.V2, Protocol.GRPC_V2)
    return completed, {"serviceEnvelope": "kservev2" if is_v2 else "kserve"}
