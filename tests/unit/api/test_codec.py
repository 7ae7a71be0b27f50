from __future__ import annotations

from typing import Any

import pytest

from isvc.api import DecodeError, InferenceService, ServingRuntime
from isvc.api.codec import decode
from isvc.api.inferenceservice import InferenceServiceSpec, PredictorSpec


def service(**predictor: Any) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "iris", "namespace": "default", "labels": {"a": "b"}, "managedFields": [{"manager": "x"}]},
        "spec": {"predictor": predictor},
    }


FULL = service(
    minReplicas=0,
    nodeSelector={"disk": "fast"},
    containers=[{"name": "sidecar", "image": "x"}],
    model={
        "modelFormat": {"name": "sklearn", "version": "1"},
        "storageUri": "gs://models/iris",
        "resources": {"limits": {"cpu": "1"}},
        "env": [{"name": "A", "value": "b"}],
    },
    workerSpec={"pipelineParallelSize": 2, "containers": [{"name": "worker"}]},
)


def test_fields_of_the_pod_are_kept_beside_our_own():
    predictor = InferenceService.decode(FULL).spec.predictor
    assert predictor.min_replicas == 0
    assert predictor.pod == {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "sidecar", "image": "x"}]}
    assert predictor.model is not None
    assert predictor.model.model_format.name == "sklearn"
    assert predictor.model.container == {"resources": {"limits": {"cpu": "1"}}, "env": [{"name": "A", "value": "b"}]}
    assert predictor.worker_spec is not None
    assert predictor.worker_spec.pod == {"containers": [{"name": "worker"}]}


def test_encoding_gives_back_what_was_decoded():
    assert InferenceService.decode(FULL).encode() == FULL


def test_defaults_are_not_shared_between_objects():
    first = decode(InferenceServiceSpec, {"predictor": {"volumes": []}})
    assert first.predictor.pod == {"volumes": []}
    assert decode(InferenceServiceSpec, {}).predictor.pod == {}
    assert PredictorSpec().pod == {}


def test_required_fields_are_written_even_when_they_are_zero():
    canary = {"predictor": {"name": "b"}, "trafficPercent": 0}
    obj = service(model={}) | {"spec": {"predictor": {"model": {}}, "canary": [canary]}}
    encoded = InferenceService.decode(obj).encode()
    assert encoded["spec"]["canary"] == [canary]
    assert encoded["spec"]["predictor"]["model"] == {"modelFormat": {"name": ""}}


def test_null_means_absent():
    obj = service(minReplicas=None, labels=None, model=None, containers=None) | {"status": None}
    value = InferenceService.decode(obj)
    assert value.spec.predictor == PredictorSpec(pod=value.spec.predictor.pod)
    assert value.status.conditions == []


def test_runtimes():
    obj = {"spec": {"supportedModelFormats": [{"name": "x", "autoSelect": True}], "containers": [], "hostIPC": True}}
    spec = ServingRuntime.decode(obj).spec
    assert spec.pod == {"containers": [], "hostIPC": True}
    assert spec.speaks("v2")


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (service(minReplicas="1"), "spec.predictor.minReplicas: expected an integer, got a string"),
        (service(minReplicas=2**40), "spec.predictor.minReplicas: expected an integer <= 2147483647"),
        (service(storageUris=[{}, {"uri": 4}]), "spec.predictor.storageUris[1].uri: expected a string, got an integer"),
        (service(model=[]), "spec.predictor.model: expected an object, got a list"),
        (service(labels={"a": 1}), "spec.predictor.labels[...]: expected a string, got an integer"),
        ({"spec": []}, "spec: expected an object, got a list"),
        ([], "expected an object, got a list"),
    ],
)
def test_errors_name_the_field(obj: Any, message: str):
    with pytest.raises(DecodeError) as caught:
        InferenceService.decode(obj)
    assert str(caught.value) == message
