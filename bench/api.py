"""How long the pure work on our kinds takes: decoding, defaulting, validating, converting, making CRDs.

Each line is the best of several runs, which is what the code takes when nothing else runs. `--check` fails when
decoding and encoding a typical InferenceService takes 50 µs or more.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable

from isvc.api import InferenceService
from isvc.api.defaults.inferenceservice import ServiceDefaults, default_service
from isvc.api.kinds.crds import crds
from isvc.api.llm.conversion import to_v1alpha1, to_v1alpha2
from isvc.api.validation.inferenceservice import validate_service
from isvc.serving.config import Config

LIMIT = 50e-6
CONDITIONS = ("IngressReady", "PredictorReady", "Ready", "RoutesReady", "TransformerReady")
TYPICAL = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {
        "name": "sklearn-iris",
        "namespace": "default",
        "uid": "0b9c33aa-95cc-4a3e-9d4c-0d50de4a1a1c",
        "resourceVersion": "1234",
        "generation": 2,
        "creationTimestamp": "2026-11-15T12:00:00Z",
        "labels": {"team": "fraud"},
        "annotations": {"serving.kserve.io/deploymentMode": "Standard", "modelFormat": "sklearn"},
        "finalizers": ["inferenceservice.finalizers"],
    },
    "spec": {
        "predictor": {
            "minReplicas": 1,
            "maxReplicas": 3,
            "nodeSelector": {"disk": "fast"},
            "serviceAccountName": "models",
            "model": {
                "modelFormat": {"name": "sklearn", "version": "1"},
                "protocolVersion": "v2",
                "storageUri": "gs://kfserving-examples/models/sklearn/1.0/model",
                "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "1", "memory": "2Gi"}},
                "env": [{"name": "LOG_LEVEL", "value": "info"}],
            },
            "logger": {"mode": "all", "url": "http://broker"},
        },
        "transformer": {"containers": [{"name": "kserve-container", "image": "example.com/transform:1"}]},
    },
    "status": {
        "url": "http://sklearn-iris.default.example.com",
        "observedGeneration": 2,
        "deploymentMode": "Standard",
        "conditions": [
            {"type": name, "status": "True", "lastTransitionTime": "2026-11-15T12:00:00Z"} for name in CONDITIONS
        ],
        "components": {"predictor": {"url": "http://sklearn-iris-predictor.default.example.com"}},
        "modelStatus": {"copies": {"failedCopies": 0, "totalCopies": 1}, "transitionStatus": "UpToDate"},
    },
}
LLM = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "metadata": {"name": "llama", "namespace": "default"},
    "spec": {
        "model": {"uri": "hf://meta-llama/Llama-3.1-8B-Instruct", "name": "llama"},
        "replicas": 3,
        "kvCacheOffloading": {"cpu": "10Gi"},
        "template": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]},
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
    },
}
DEFAULTS = ServiceDefaults(limits={"cpu": "1", "memory": "2Gi"}, requests={"cpu": "1", "memory": "2Gi"})


def seconds(work: Callable[[], object]) -> float:
    timer = timeit.Timer(work)
    number, _ = timer.autorange()
    return min(timer.repeat(5, number)) / number


def main() -> int:
    value = InferenceService.decode(TYPICAL)
    assert value.encode() == TYPICAL
    round_trip = seconds(lambda: InferenceService.decode(TYPICAL).encode())
    for name, taken in (
        ("decode an InferenceService", seconds(lambda: InferenceService.decode(TYPICAL))),
        ("encode an InferenceService", seconds(value.encode)),
        ("decode and encode", round_trip),
        ("default an InferenceService", seconds(lambda: default_service(TYPICAL, DEFAULTS))),
        ("validate an InferenceService", seconds(lambda: validate_service(TYPICAL))),
        ("convert an LLMInferenceService there and back", seconds(lambda: to_v1alpha2(to_v1alpha1(LLM)))),
        ("parse an empty configuration", seconds(lambda: Config.parse({}))),
        ("make all CRDs", seconds(lambda: list(crds(described=True)))),
    ):
        sys.stdout.write(f"{taken * 1e6:12.1f} µs  {name}\n")
    return 1 if "--check" in sys.argv and round_trip >= LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
