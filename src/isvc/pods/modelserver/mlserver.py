"""The settings of MLServer, which come as environment variables, as defaults of this server's flags."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

_FRAMEWORKS: Final = {
    "mlserver_sklearn.SKLearnModel": "sklearn",
    "mlserver_xgboost.XGBoostModel": "xgboost",
    "mlserver_lightgbm.LightGBMModel": "lightgbm",
    "mlserver_mlflow.MLflowRuntime": "mlflow",
}
_FLAGS: Final = {"MLSERVER_MODEL_NAME": "model_name", "MLSERVER_MODEL_URI": "model_dir"}


def defaults(environ: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {flag: environ[name] for name, flag in _FLAGS.items() if name in environ}
    if (implementation := environ.get("MLSERVER_MODEL_IMPLEMENTATION")) is not None:
        found["framework"] = _FRAMEWORKS.get(implementation, implementation)
    if (port := environ.get("MLSERVER_HTTP_PORT", "")).isdigit():
        found["http_port"] = int(port)
    declared = {str(port) for port in json.loads(environ.get("ISVC_PORTS") or "{}").values()}
    if (port := environ.get("MLSERVER_GRPC_PORT", "")) in declared:  # its runtime names one in any case
        found["grpc_port"] = int(port)
    return found
