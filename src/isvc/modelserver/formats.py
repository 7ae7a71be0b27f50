"""The formats of model files that this server knows, by the name that a flag or a model's description gives."""

from __future__ import annotations

from typing import Final

from isvc.modelserver.frameworks import LightGBMModel, SklearnModel, TabularModel, XGBoostModel
from isvc.modelserver.mlflow_model import MLflowModel
from isvc.modelserver.onnx_model import OnnxModel
from isvc.modelserver.pmml_model import PmmlModel
from isvc.modelserver.torch_model import TorchScriptModel

FRAMEWORKS: Final[dict[str, type[TabularModel]]] = {
    "sklearn": SklearnModel,
    "xgboost": XGBoostModel,
    "lightgbm": LightGBMModel,
    "onnx": OnnxModel,
    "mlflow": MLflowModel,
    "pmml": PmmlModel,
    "pytorch": TorchScriptModel,
}
