"""Whatever a service or a runtime has of the wrong shape, the status says where; it never looks like a bug of ours.

A cluster with KServe's minimal CRDs and no webhooks stores anything, so the controller has to check for itself.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.answers import answers
from tests.unit.controllers.inferenceservice.healthy_children import with_healthy_children

from isvc.api import InferenceService
from isvc.api.codec import DecodeError
from isvc.api.completion import read
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.status.fold import fold_status
from isvc.engine.outcome import Outcome
from isvc.kube.conditions import find
from isvc.kube.objects import Object
from isvc.serving.config import Config
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.thirdparty import OPTIONAL

NOW = "2026-01-01T00:00:00Z"
CONTAINER: Object = {
    "name": "kserve-container",
    "image": "server:1",
    "args": ["--model_name={{.Name}}"],
    "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    "ports": [{"containerPort": 8080, "name": "http1", "protocol": "TCP"}],
    "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}, "requests": {"memory": "1Gi"}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "readinessProbe": {"httpGet": {"path": "/", "port": 8080}},
}
POD: Object = {
    "containers": [CONTAINER, {**CONTAINER, "name": "transformer-container"}],
    "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
    "nodeSelector": {"disk": "ssd"},
    "imagePullSecrets": [{"name": "pull"}],
    "tolerations": [{"key": "gpu", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}
METRICS = [
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}},
    {"type": "PodMetric", "podmetric": {"metric": {"backend": "opentelemetry", "metricNames": ["m"]}, "target": {}}},
]
MODEL = {"modelFormat": {"name": "f", "version": "1"}, "storageUri": "gs://a/b", **CONTAINER}
SPEC: Object = {
    "predictor": {
        **POD,
        "model": {**MODEL, "runtime": "server"},
        "minReplicas": 1,
        "autoScaling": {"metrics": METRICS, "behavior": {"scaleUp": {"stabilizationWindowSeconds": 1}}},
        "deploymentStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}},
        "logger": {"mode": "all"},
        "workerSpec": {"pipelineParallelSize": 2, "containers": [{**CONTAINER, "name": "worker-container"}]},
    },
    "transformer": {**POD, "storageUris": [{"uri": "s3://b/m", "mountPath": "/mnt/models"}]},
    "explainer": {"art": {"type": "SquareAttack", **CONTAINER}},
    "canary": [{"predictor": {"name": "v2", "model": MODEL, **POD}, "trafficPercent": 10}],
}
RUNTIME: Object = {
    "supportedModelFormats": [{"name": "f", "version": "1", "autoSelect": True}],
    "protocolVersions": ["v1"],
    "labels": {"a": "b"},
    **POD,
    "workerSpec": {"containers": [{**CONTAINER, "name": "worker-container"}]},
}

anything: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -3, 1.5, "", "x", "{{.Nope", [], ["x"], [None], [[]], {}, {"x": 1}, {"name": None}, {"name": 7}]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        found += places(inner, (*path, step))
    return found


def spoiled(value: Object, path: tuple[Any, ...], by: Any) -> Object:
    value = copy.deepcopy(value)
    holder: Any = value
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = by
    return value


def observed(raw: Object, service: InferenceService, runtime: Object, mode: str, scaler: str) -> Observed:
    ingress = '{"ingressGateway": "a/b", "kserveIngressGateway": "a/b", "enableGatewayApi": true}'
    config = Config.parse({"ingress": ingress, "deploy": f'{{"defaultDeploymentMode": "{mode}"}}'})
    raw = {**raw, "metadata": {**raw["metadata"], "annotations": {"serving.kserve.io/autoscalerClass": scaler}}}
    secrets = {"storage-config": None, "": None, "s": None}
    return Observed(
        raw,
        service,
        config,
        runtimes=Runtimes((Runtime.of({"metadata": {"name": "server"}, "spec": runtime}, cluster=False),), ()),
        served=OPTIONAL,
        answers=answers("ns", {"": None, "default": None}, secrets),
        now=NOW,
    )


def reconciled(spec: Any, runtime: Any, mode: str, scaler: str) -> Object | DecodeError:
    raw: Object = {"metadata": {"name": "iris", "namespace": "ns", "uid": "u", "generation": 1}, "spec": spec}
    try:
        raw, service = read(InferenceService, raw)
    except DecodeError as error:
        return error
    seen = with_healthy_children(observed(raw, service, runtime, mode, scaler))
    return fold_status(seen, plan(seen), Outcome())


MODES = st.sampled_from(["Standard", "Knative"])
SCALERS = st.sampled_from(["hpa", "keda", "none"])


@given(st.sampled_from(places(SPEC)), anything, MODES, SCALERS)
def test_a_malformed_service_is_refused_by_path_or_planned(path: Any, by: Any, mode: str, scaler: str) -> None:
    result = reconciled(spoiled(SPEC, path, by), RUNTIME, mode, scaler)
    if isinstance(result, DecodeError):
        assert result.path.startswith("spec")
    else:
        assert find(result["conditions"], "Ready") is not None


@given(st.sampled_from(places(RUNTIME)), anything, MODES, SCALERS)
def test_a_malformed_runtime_is_refused_by_path_or_used(path: Any, by: Any, mode: str, scaler: str) -> None:
    status = reconciled(SPEC, spoiled(RUNTIME, path, by), mode, scaler)
    assert isinstance(status, dict)
    assert find(status["conditions"], "Ready") is not None


def test_the_model_status_names_the_field_of_a_malformed_runtime() -> None:
    runtime = spoiled(RUNTIME, ("containers", 0, "ports", 0, "containerPort"), "http")
    status = reconciled(SPEC, runtime, "Standard", "hpa")
    assert isinstance(status, dict)
    assert status["modelStatus"]["transitionStatus"] == "InvalidSpec"
    assert "spec.containers[0].ports[0].containerPort" in status["modelStatus"]["lastFailureInfo"]["message"]
