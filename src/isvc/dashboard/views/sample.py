"""A request to begin with, on the form that sends one."""

from __future__ import annotations

from typing import Any, Final

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.kube.objects import Object, dig
from isvc.kube.resource import Resource

V1: Final = {"instances": [[6.8, 2.8, 4.8, 1.4]]}
V2: Final = {"inputs": [{"name": "input-0", "shape": [1, 4], "datatype": "FP32", "data": [6.8, 2.8, 4.8, 1.4]}]}
CHAT: Final = {"messages": [{"role": "user", "content": "Tell me about Paris."}], "max_tokens": 200, "stream": True}
SAMPLES: Final = {"v1": V1, "v2": V2, "chat": CHAT}


def sample(resource: Resource, service: Object) -> dict[str, Any]:
    """In the protocol that the service most likely speaks."""
    model = dig(service, "spec", "predictor", "model") or {}
    if resource == LLM_INFERENCE_SERVICES or dig(model, "modelFormat", "name") == "huggingface":
        return CHAT
    return V2 if model.get("protocolVersion") == "v2" else V1
