"""A small model server: files of sklearn, xgboost, lightgbm, ONNX and MLflow, and custom predictors and transformers.

It answers to the flags, paths and protocols of KServe's own Python servers, so that the same serving runtimes run
here and in a container. It stands alone: nothing else of isvc is imported.

    from isvc import Model, ModelServer

    class Doubler(Model):
        def predict(self, payload, headers):
            return {"predictions": [2 * x for x in payload["instances"]]}

    ModelServer().start([Doubler("doubler")])
"""

from isvc.pods.modelserver.errors import InferenceError, InvalidInput
from isvc.pods.modelserver.model import Model
from isvc.pods.modelserver.program import ModelServer
from isvc.pods.modelserver.tensors import InferRequest, InferResponse, Tensor

__all__ = ["InferRequest", "InferResponse", "InferenceError", "InvalidInput", "Model", "ModelServer", "Tensor"]
