import pytest

from isvc.api import InferenceService
from isvc.api.codec import decode
from isvc.api.inferenceservice import PredictorSpec
from isvc.api.servingruntime import ServingRuntimeSpec
from isvc.serving import endpoints


def service(spec, address="http://m.ns.svc.cluster.local"):
    raw = {
        "metadata": {"name": "m", "namespace": "ns"},
        "spec": spec,
        "status": {"address": {"url": address}} if address else {},
    }
    return InferenceService.decode(raw)


def no_runtime(name):
    raise AssertionError(f"{name} was looked up")


SKLEARN = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://x"}


def test_the_model_answers_under_the_services_name_in_the_first_protocol():
    url = endpoints.predictor_endpoint(service({"predictor": {"model": SKLEARN}}), no_runtime)
    assert url == "http://m.ns.svc.cluster.local/v1/models/m:predict"


@pytest.mark.parametrize(
    "arguments", [["--model_name=other"], ["--model_name", "other"], ["--model_name=first", "--model_name=other"]]
)
def test_a_name_on_the_command_line_wins(arguments):
    spec = {"predictor": {"model": {**SKLEARN, "args": arguments, "protocolVersion": "v2"}}}
    assert endpoints.predictor_endpoint(service(spec), no_runtime).endswith("/v2/models/other/infer")


def test_a_transformer_answers_first_and_says_its_own_protocol():
    container = {"name": "kserve-container", "env": [{"name": "PROTOCOL", "value": "v2"}]}
    spec = {"predictor": {"model": SKLEARN}, "transformer": {"containers": [container]}}
    assert endpoints.predictor_endpoint(service(spec), no_runtime).endswith("/v2/models/m/infer")


def test_a_named_runtime_decides_the_protocol():
    spec = {"predictor": {"model": {**SKLEARN, "runtime": "rt"}}}
    runtime = ServingRuntimeSpec(protocol_versions=["grpc-v2", "v2", "v1"])
    assert endpoints.predictor_endpoint(service(spec), {"rt": runtime}.get).endswith("/v2/models/m/infer")
    with pytest.raises(endpoints.NoEndpoint, match="neither v1 nor v2"):
        endpoints.predictor_endpoint(service(spec), {"rt": ServingRuntimeSpec(protocol_versions=["grpc-v2"])}.get)
    with pytest.raises(endpoints.NoEndpoint, match="no runtime is named rt"):
        endpoints.predictor_endpoint(service(spec), lambda name: None)


def test_a_service_without_an_address_has_no_endpoint_yet():
    with pytest.raises(endpoints.NoEndpoint, match="InferenceService m is not ready"):
        endpoints.predictor_endpoint(service({"predictor": {"model": SKLEARN}}, address=""), no_runtime)


@pytest.mark.parametrize(
    ("predictor", "multi"),
    [
        ({"model": {"modelFormat": {"name": "sklearn"}}}, True),
        ({"model": SKLEARN}, False),
        ({"model": {"modelFormat": {"name": "huggingface"}}}, False),
        ({"model": {"modelFormat": {"name": "sklearn"}}, "storageUris": [{"uri": "gs://y"}]}, False),
        ({"containers": [{"env": [{"name": "MULTI_MODEL_SERVER", "value": "true"}]}]}, True),
        ({"containers": [{"image": "x"}]}, False),
        ({}, False),
    ],
)
def test_an_empty_server_takes_trained_models(predictor, multi):
    assert endpoints.is_multi_model(decode(PredictorSpec, predictor)) is multi


@pytest.mark.parametrize(("model", "multi"), [({}, True), ({"storage": {}}, False), ({"storageUri": ""}, False)])
def test_a_model_that_says_where_it_is_is_the_only_one(model, multi):
    assert (
        endpoints.is_multi_model(decode(PredictorSpec, {"model": {"modelFormat": {"name": "sklearn"}, **model}}))
        is multi
    )
