"""The formats of model files that this server knows, by the name that a flag or a model's description gives."""

from __future__ import annotations

from typing import Final

from isvc.pods.modelserver.frameworks import LightGBMModel, SklearnModel, TabularModel, XGBoostModel
from isvc.pods.modelserver.mlflow_model import MLflowModel
from isvc.pods.modelserver.onnx_model import OnnxModel
from isvc.pods.modelserver.pmml_model import PmmlModel
from isvc.pods.modelserver.torch_model import TorchScriptModel

FRAMEWORKS: Final[dict[str, type[TabularModel]]] = {
    "sklearn": SklearnModel,
    "xgboost": XGBoostModel,
    "lightgbm": LightGBMModel,
    "onnx": OnnxModel,
    "mlflow": MLflowModel,
    "pmml": PmmlModel,
    "pytorch": TorchScriptModel,
}
