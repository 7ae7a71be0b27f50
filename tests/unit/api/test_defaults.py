from __future__ import annotations

import copy
from typing import Any

import pytest

from isvc.api import DecodeError, LocalModelCache, LocalModelNamespaceCache
from isvc.api.defaults.inferenceservice import ServiceDefaults, default_service
from isvc.api.defaults.llm import ROUTING_GROUP, default_llm_service
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode
from isvc.kube.objects import dig

DEFAULTS = ServiceDefaults(requests={"cpu": "1"}, limits={"cpu": "1", "memory": "2Gi"}, art_version="v1")
LABEL, NAMESPACE = "internal.serving.kserve.io/localmodel", "internal.serving.kserve.io/localmodel-namespace"
PVC = "internal.serving.kserve.io/localmodel-pvc-name"


def service(spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "iris", **metadata}, "spec": spec}


def model(**fields: Any) -> dict[str, Any]:
    return {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, **fields}}}


def annotations_of(obj: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations", {})
    return found


def test_nothing_that_comes_in_is_changed():
    obj = service({"predictor": {"sklearn": {"storageUri": "gs://a"}}, "transformer": {"containers": [{}]}})
    before = copy.deepcopy(obj)
    default_service(obj, DEFAULTS)
    assert obj == before


@pytest.mark.parametrize(
    ("framework", "protocol"),
    [("sklearn", None), ("triton", "v2"), ("onnx", "v2"), ("huggingface", "v2"), ("tensorflow", None)],
)
def test_a_framework_becomes_a_model(framework: str, protocol: str | None):
    done = default_service(service({"predictor": {framework: {"storageUri": "gs://a", "image": "x"}}}), DEFAULTS)
    predictor = done["spec"]["predictor"]
    assert framework not in predictor
    assert predictor["model"]["modelFormat"] == {"name": framework}
    assert predictor["model"].get("protocolVersion") == protocol
    assert predictor["model"]["image"] == "x"
    assert annotations_of(done)["modelFormat"] == framework


def test_modelmesh_keeps_its_framework():
    mesh = service({"predictor": {"sklearn": {}}}, annotations={DEPLOYMENT_MODE: "ModelMesh"})
    assert "sklearn" in default_service(mesh, DEFAULTS)["spec"]["predictor"]


@pytest.mark.parametrize(
    ("asked", "default", "written"),
    [
        ("RawDeployment", DeploymentMode.KNATIVE, "Standard"),
        ("Serverless", DeploymentMode.STANDARD, "Knative"),
        ("Nonsense", DeploymentMode.STANDARD, "Nonsense"),
        (None, DeploymentMode.STANDARD, "Standard"),
        (None, DeploymentMode.KNATIVE, None),
    ],
)
def test_modes_are_written_down_under_todays_names(asked: str | None, default: DeploymentMode, written: str | None):
    obj = service(model(), **({"annotations": {DEPLOYMENT_MODE: asked}} if asked else {}))
    assert annotations_of(default_service(obj, ServiceDefaults(mode=default))).get(DEPLOYMENT_MODE) == written


def test_containers_of_ones_own_get_a_name_and_resources():
    spec = {"predictor": {"containers": [{"image": "x", "resources": {"limits": {"cpu": "3"}}}]}}
    spec["transformer"] = {"containers": [{"name": "mine"}, {"name": "other"}]}
    done = default_service(service(spec), DEFAULTS)["spec"]
    container = done["predictor"]["containers"][0]
    assert container["name"] == "kserve-container"
    assert container["resources"] == {"limits": {"cpu": "3", "memory": "2Gi"}, "requests": {"cpu": "1"}}
    assert [each["name"] for each in done["transformer"]["containers"]] == ["kserve-container", "other"]


def test_explainers_get_a_version():
    art = default_service(service({**model(), "explainer": {"art": {"type": "SquareAttack"}}}), DEFAULTS)
    assert art["spec"]["explainer"]["art"]["runtimeVersion"] == "v1"


def test_tokens_are_not_mounted_unless_wanted():
    spec = {**model(), "transformer": {"containers": [{}], "automountServiceAccountToken": True}}
    done = default_service(service(spec), ServiceDefaults(mount_token=False))["spec"]
    assert done["predictor"]["automountServiceAccountToken"] is False
    assert done["transformer"]["automountServiceAccountToken"] is True


def test_required_fields_may_be_left_out():
    spec = {"predictor": {"containers": [{"env": [{"value": "x"}], "livenessProbe": {"grpc": {}}}], "volumes": [{}]}}
    predictor = default_service(service(spec), DEFAULTS)["spec"]["predictor"]
    assert predictor["containers"][0]["env"] == [{"name": "", "value": "x"}]
    assert predictor["containers"][0]["livenessProbe"] == {"grpc": {"port": 0}}
    assert predictor["volumes"] == [{"name": ""}]


def test_wrong_types_are_refused_wherever_they_are():
    with pytest.raises(DecodeError, match=r"spec\.predictor\.volumes: expected a list, got an object"):
        default_service(service({"predictor": {"volumes": {}}}), DEFAULTS)


def cache(
    name: str, uri: str = "gs://models/iris", groups: tuple[str, ...] = ("gpu", "cpu"), namespace: str = ""
) -> Any:
    kind = LocalModelNamespaceCache if namespace else LocalModelCache
    spec = {"sourceModelUri": uri, "modelSize": "1Gi", "nodeGroups": list(groups)}
    return kind.decode({"metadata": {"name": name, "namespace": namespace}, "spec": spec})


def test_a_cached_model_is_marked():
    obj = service(model(storageUri="gs://models/iris/v1"))
    done = default_service(obj, DEFAULTS, [cache("other", "gs://models/i"), cache("mine")])
    assert done["metadata"]["labels"] == {LABEL: "mine"}
    assert annotations_of(done)[PVC] == "mine-gpu"
    again = default_service(done, DEFAULTS, [cache("near", namespace="default"), cache("mine")])
    assert again["metadata"]["labels"] == {LABEL: "near", NAMESPACE: "default"}
    gone = default_service(again, DEFAULTS, [])
    assert not gone["metadata"].get("labels")
    assert PVC not in annotations_of(gone)


def test_a_cache_counts_on_the_nodes_of_the_service_alone():
    obj = service(model(storageUri="gs://models/iris"), annotations={"serving.kserve.io/nodegroup": "cpu"})
    done = default_service(obj, DEFAULTS, [cache("gpus", groups=("gpu",)), cache("both")])
    assert annotations_of(done)[PVC] == "both-cpu"


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
def test_llm_services(version: str):
    obj = {
        "apiVersion": f"serving.kserve.io/{version}",
        "kind": "LLMInferenceService",
        "metadata": {"name": "llama"},
        "spec": {"model": {"uri": "hf://a"}, "template": {}, "router": {"route": {"group": "g", "weight": 1}}},
    }
    done = default_llm_service(obj, [cache("mine", "hf://a")])
    assert done["apiVersion"] == obj["apiVersion"]
    assert done["spec"]["model"] == {"uri": "hf://a", "name": "llama"}
    assert done["spec"]["template"] == {"containers": []}
    assert done["metadata"]["labels"] == {ROUTING_GROUP: "g", LABEL: "mine"}


def test_amounts_are_spelled_in_one_way():
    limits = {"cpu": 0.5, "memory": "1024Mi", "nvidia.com/gpu": 1}
    done = default_service(service(model(resources={"limits": limits, "requests": {"cpu": "1500m"}})), DEFAULTS)
    resources = done["spec"]["predictor"]["model"]["resources"]
    assert resources["limits"] == {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"}
    assert resources["requests"] == {"cpu": "1500m"}


def test_empty_lists_do_not_move_from_a_framework_to_its_model():
    spec = {"predictor": {"triton": {"storageUri": "gs://a/b", "env": [], "args": ["x"]}}}
    done = default_service(service(spec), DEFAULTS)["spec"]["predictor"]["model"]
    assert "env" not in done
    assert done["args"] == ["x"]


def test_a_metrics_target_keeps_its_text():
    targets = [{"type": "Value", "value": 5}, {"type": "Value", "value": "1024Mi"}]
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}} for target in targets]
    spec = model()
    spec["predictor"]["autoScaling"] = {"metrics": metrics}
    done = default_service(service(spec), DEFAULTS)["spec"]["predictor"]["autoScaling"]["metrics"]
    assert [metric["resource"]["target"]["value"] for metric in done] == ["5", "1024Mi"]


@pytest.mark.parametrize(
    ("metric", "path"),
    [
        ({"type": "Resource", "resource": {"name": "cpu", "target": {}}}, ("resource", "target", "type")),
        ({"type": "External", "external": {"target": {}, "metric": {}}}, ("external", "metric", "backend")),
        ({"type": "PodMetric", "podmetric": {"target": {}, "metric": {}}}, ("podmetric", "metric", "backend")),
    ],
)
def test_a_metric_has_to_say_what_it_means(metric, path):
    """What is written as empty is refused by the CRD, which lists what there is."""
    spec = model()
    spec["predictor"]["autoScaling"] = {"metrics": [metric]}
    written = default_service(service(spec), DEFAULTS)["spec"]["predictor"]["autoScaling"]["metrics"][0]
    assert dig(written, *path) == ""


def test_an_amount_that_is_none_is_named():
    with pytest.raises(DecodeError) as error:
        default_service(service(model(resources={"limits": {"memory": "lots"}})), DEFAULTS)
    assert error.value.path == "spec.predictor.model.resources.limits.memory"


def test_amounts_elsewhere_in_a_pod_too():
    spec = model(env=[{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}])
    spec["predictor"]["volumes"] = [{"name": "cache", "emptyDir": {"sizeLimit": "2048Mi"}}]
    predictor = default_service(service(spec), DEFAULTS)["spec"]["predictor"]
    assert predictor["volumes"][0]["emptyDir"]["sizeLimit"] == "2Gi"
    assert predictor["model"]["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"


def test_uris_of_models_are_written_as_urls():
    adapters = [{"name": "sql", "uri": "S3://loras/{sql}"}]
    done = default_llm_service(service({"model": {"uri": "hf://org/a b", "lora": {"adapters": adapters}}}))
    assert done["spec"]["model"]["uri"] == "hf://org/a%20b"
    assert dig(done, "spec", "model", "lora", "adapters")[0]["uri"] == "s3://loras/%7Bsql%7D"


@pytest.mark.parametrize("uri", ["hf://org/100%", "pvc://my claim/model", "oci://registry:port/model"])
def test_uris_that_are_no_urls_are_refused(uri: str):
    with pytest.raises(DecodeError, match=r"spec\.model\.uri: expected an address"):
        default_llm_service(service({"model": {"uri": uri}}))
