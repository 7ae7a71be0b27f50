"""What a user subclasses: a model with load, preprocess, predict, postprocess and explain.

Each step may be a plain method, which runs in a thread so that it never blocks other requests, or a coroutine. The
payload is a dict for v1 requests, an `InferRequest` for v2, and bytes where the body was not JSON. A model that is
given a predictor and does not override `predict` is a transformer: its predict step asks the predictor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from isvc.pods.modelserver.errors import Unsupported
from isvc.pods.modelserver.tensors import InferRequest

if TYPE_CHECKING:
    from isvc.pods.modelserver.predictor import Predictor

Payload: TypeAlias = dict[str, Any] | InferRequest | bytes
Result: TypeAlias = Any  # a dict, InferResponse, str, bytes, or an async iterator of chunks
Headers: TypeAlias = Mapping[str, str]


class Model:
    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = False
        self.predictor: Predictor | None = None

    def load(self) -> bool:
        """Runs once before the server listens; raise, or return False, when the model cannot be used."""
        self.ready = True
        return self.ready

    def preprocess(self, payload: Payload, headers: Headers) -> Any:
        return payload

    async def predict(self, payload: Any, headers: Headers) -> Result:
        if self.predictor is None:
            raise Unsupported(f"Model with name {self.name} does not predict, and no --predictor_host was given.")
        return await self.predictor.infer(self.name, payload, headers)

    def postprocess(self, result: Result, headers: Headers) -> Result:
        return result

    async def explain(self, payload: Any, headers: Headers) -> Result:
        raise Unsupported(f"Model with name {self.name} does not explain.")

    def input_types(self) -> list[dict[str, Any]]:
        return []

    def output_types(self) -> list[dict[str, Any]]:
        return []
