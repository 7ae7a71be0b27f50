"""Refusals that no recorded case has say it in the words of KServe's, which scripts look for.

`tests/conformance/test_refusals.py` has those that were recorded.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.api.test_validation import MODEL, STANDARD, cache, llm, service

from isvc.api.validation.inferenceservice import validate_service
from isvc.api.validation.llm import validate_llm_service
from isvc.api.validation.localmodel import validate_cache, validate_namespace_cache

KEDA = {**STANDARD, "serving.kserve.io/autoscalerClass": "keda"}
POD = {"containers": [{"name": "a"}]}
MESH = {"serving.kserve.io/deploymentMode": "ModelMesh"}


def downloads(uri: str, folder: str) -> dict[str, Any]:
    return service({"predictor": {**POD, "storageUris": [{"uri": uri, "mountPath": folder}]}})


def scaled_by(metric: dict[str, Any]) -> dict[str, Any]:
    return service({"predictor": {"model": MODEL, "autoScaling": {"metrics": [metric]}}}, **KEDA)


def targets(**target: Any) -> dict[str, Any]:
    return scaled_by({"type": "Resource", "resource": {"name": "memory", "target": target}})


def of_framework(name: str, **fields: Any) -> dict[str, Any]:
    return service({"predictor": {name: fields}}, **MESH)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (downloads("", "/mnt/a"), "storage URI cannot be empty"),
        (downloads("gs://a", "mnt"), "storage path must be absolute"),
        (
            service({"predictor": {"containers": [{"env": [{"name": "PROTOCOL", "value": "grpc-v2"}]}]}}),
            "invalid protocol",
        ),
        (
            service({"predictor": {"model": MODEL}, "canary": [{"predictor": {"name": "b"}, "trafficPercent": 120}]}),
            "must be between 0 and 100, got 120",
        ),
        (
            service({"predictor": POD, "canary": [{"predictor": {"name": "b"}}]}, **STANDARD),
            "requires a stable predictor with a model",
        ),
        (scaled_by({"type": "Resource", "resource": {"name": "disk"}}), "is not supported"),
        (scaled_by({"type": "External"}), "is not set for external metric source type"),
        (scaled_by({"type": "PodMetric"}), "is not set for pod metric source type"),
        (scaled_by({"type": "Wish"}), "unknown KEDA metric type"),
        (targets(type="Utilization"), "averageUtilization: should be set"),
        (targets(type="Value"), "the memory target value type should be AverageValue or Utilization"),
        (of_framework("onnx", storageUri="gs://a/b.pt"), "expected storageUri file extension: '.onnx'"),
        (of_framework("tensorflow", runtimeVersion="2-gpu"), "is GPU enabled but GPU resources are not requested"),
        (
            of_framework("pytorch", runtimeVersion="2", resources={"limits": {"nvidia.com/gpu": "1"}}),
            "is not GPU enabled but GPU resources are requested",
        ),
        (of_framework("pmml", storageUri="gs://a", storage={}), "must be one of: s3://"),
        (of_framework("pmml", storage={"parameters": {"type": "gs"}}), "must be one of: s3"),
    ],
)
def test_of_services(obj: dict[str, Any], words: str) -> None:
    assert words in validate_service(obj).message


WVA: dict[str, Any] = {"maxReplicas": 2, "wva": {"hpa": {}}}
DIRECT: dict[str, Any] = {"maxReplicas": 2, "keda": {"triggers": [{"type": "cpu"}]}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"replicas": 1, "scaling": WVA}, "scaling and replicas are mutually exclusive"),
        ({"scaling": {**WVA, "minReplicas": 3}}, "minReplicas (3) cannot exceed maxReplicas (2)"),
        ({"scaling": {**WVA, **DIRECT}}, "wva and keda are mutually exclusive; choose one scaling mechanism"),
        ({"scaling": {"maxReplicas": 2, "keda": {}}}, "at least one trigger is required"),
        (
            {"scaling": {"maxReplicas": 2, "wva": {"hpa": {}, "keda": {}}}},
            "hpa and keda are mutually exclusive; choose one actuator backend",
        ),
        ({"scaling": WVA, "prefill": {"scaling": DIRECT}}, "decode and prefill must use the same scaling mode"),
        (
            {"scaling": WVA, "prefill": {"scaling": {"maxReplicas": 2, "wva": {"keda": {}}}}},
            "decode and prefill must use the same actuator backend",
        ),
        ({"router": {"scheduler": {"config": {"ref": {}}}}}, "name is empty"),
        (
            {
                "parallelism": {"data": 2, "dataLocal": 1},
                "worker": {"containers": []},
                "rolloutStrategy": {"maxUnavailable": 0},
            },
            "maxSurge is required for multi-node workloads when maxUnavailable is 0",
        ),
    ],
)
def test_of_llm_services(spec: dict[str, Any], words: str) -> None:
    assert words in validate_llm_service(llm(spec)).message


def test_of_caches() -> None:
    assert "LocalModelCache b has the same StorageURI" in validate_cache(cache("a"), [cache("b")]).message
    assert "NodeGroup gpu not found" in validate_namespace_cache(cache("a"), ["cpu"]).message
