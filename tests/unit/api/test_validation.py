"""Refusals say where, what is wrong, and what would be right; what is being deleted or not changed is never refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from isvc.api import ClusterServingRuntime, DecodeError
from isvc.api.validation import Verdict
from isvc.api.validation.inferencegraph import validate_graph
from isvc.api.validation.inferenceservice import validate_service
from isvc.api.validation.llm import validate_llm_config, validate_llm_service
from isvc.api.validation.localmodel import validate_cache, validate_deletion, validate_namespace_cache
from isvc.api.validation.servingruntime import validate_runtime
from isvc.api.validation.trainedmodel import validate_trained_model

MODEL = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}
STANDARD = {"serving.kserve.io/deploymentMode": "Standard"}


def service(spec: dict[str, Any] | None = None, name: str = "iris", **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"predictor": {"model": MODEL}} if spec is None else spec,
    }


def predictor(**fields: Any) -> dict[str, Any]:
    return service({"predictor": {"model": MODEL, **fields}}, **STANDARD)


def llm(spec: dict[str, Any], version: str = "v1alpha2") -> dict[str, Any]:
    metadata = {"name": "llama"}
    return {
        "apiVersion": f"serving.kserve.io/{version}",
        "kind": "LLMInferenceService",
        "metadata": metadata,
        "spec": spec,
    }


def paths(verdict: Verdict) -> list[str]:
    return [problem.path for problem in verdict.problems]


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (service(name="4cast"), "must consist of lower case alphanumeric characters"),
        (service({"predictor": {}}), "spec.predictor: exactly one of model, sklearn"),
        (service({"predictor": {"sklearn": {}, "model": MODEL}}), "got sklearn and model"),
        (
            predictor(minReplicas=3, maxReplicas=2),
            "spec.predictor.minReplicas: cannot be greater than maxReplicas (2), got 3",
        ),
        (predictor(minReplicas=-1), "spec.predictor.minReplicas: cannot be less than 0, got -1"),
        (predictor(containerConcurrency=-1), "spec.predictor.containerConcurrency: cannot be less than 0"),
        (predictor(logger={"url": "http://x"}), "spec.predictor.logger.mode: invalid logger type"),
        (
            predictor(initContainers=[{"name": "i", "env": [{"name": "PYTHONPATH"}]}]),
            "spec.predictor.initContainers[0]",
        ),
        (
            predictor(workerSpec={"pipelineParallelSize": 0}),
            "spec.predictor.workerSpec.pipelineParallelSize: cannot be less than 1",
        ),
        (
            service({"predictor": {"model": {**MODEL, "name": "x"}}}),
            "spec.predictor.model.name: is a field that is not allowed",
        ),
        (service({"predictor": {"model": MODEL}, "transformer": {}}), "spec.transformer: containers must be specified"),
        (service(None, **{"serving.kserve.io/autoscalerClass": "kpa"}), "choose one of hpa, keda, external, none"),
        (
            service({"predictor": {"model": MODEL, "scaleMetric": "cpu"}}),
            "scaleMetric: 'cpu' is not a supported metric of Knative's autoscaler; choose concurrency or rps",
        ),
        (
            service({"predictor": {"containers": [{"env": [{"name": "PROTOCOL", "value": "grpc-v2"}]}]}}),
            "spec.predictor.containers[0].env: invalid protocol 'grpc-v2': PROTOCOL must be v1 or v2",
        ),
        (
            service(
                {"predictor": {"model": MODEL}, "canary": [{"predictor": {"model": MODEL}, "trafficPercent": 120}]}
            ),
            "spec.canary[0].trafficPercent: must be between 0 and 100, got 120",
        ),
    ],
)
def test_services_are_refused_with_a_reason(obj: dict[str, Any], message: str):
    assert message in validate_service(obj).message


def test_all_problems_are_told_at_once():
    verdict = validate_service(predictor(minReplicas=-1, maxReplicas=-1, logger={"mode": "x"}))
    assert paths(verdict) == ["spec.predictor.minReplicas", "spec.predictor.maxReplicas", "spec.predictor.logger.mode"]


def test_wrong_types_name_the_field():
    with pytest.raises(DecodeError, match=r"^spec\.predictor\.containers\[0\]\.env: expected a list, got a string$"):
        validate_service(predictor(containers=[{"name": "x", "env": "y"}]))


def test_the_mode_cannot_change_once_it_is_recorded():
    old = service() | {"status": {"deploymentMode": "Serverless"}}
    assert (
        "cannot be changed from 'Knative' to 'Standard'"
        in validate_service(service(None, "iris", **STANDARD), old).message
    )
    assert not validate_service(service(None, "iris", **{"serving.kserve.io/deploymentMode": "Knative"}), old).problems
    assert not validate_service(service(None, "iris", **STANDARD), service()).problems


def test_confidential_warns_where_it_has_no_effect():
    confidential = {**MODEL, "storageUri": "oci://a", "confidential": {"enabled": True, "resourceId": "kbs:///a/b/c"}}
    verdict = validate_service(service({"predictor": {"model": confidential}}))
    assert not verdict.problems
    assert "oci://" in verdict.warnings[0]


@pytest.mark.parametrize("bad", [service({"predictor": {}}), service(name="4cast"), predictor(minReplicas=-1)])
def test_what_changes_nothing_is_never_refused(bad: dict[str, Any]):
    assert validate_service(bad).problems
    touched = copy.deepcopy(bad)
    touched["metadata"] |= {"finalizers": [], "labels": {"a": "b"}, "resourceVersion": "2"}
    touched["status"] = {"url": "http://x"}
    assert not validate_service(touched, bad).problems
    changed = copy.deepcopy(bad)
    changed["spec"]["predictor"]["timeout"] = 5
    assert validate_service(changed, bad).problems


@pytest.mark.parametrize("bad", [service({"predictor": {}}), predictor(minReplicas=-1)])
def test_what_is_being_deleted_is_never_refused(bad: dict[str, Any]):
    leaving = copy.deepcopy(bad)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    leaving["spec"]["predictor"]["timeout"] = 5
    assert not validate_service(leaving, bad).problems


def graph(**nodes: Any) -> dict[str, Any]:
    return {"metadata": {"name": "g"}, "spec": {"nodes": nodes}}


def node(kind: str, *steps: dict[str, Any]) -> dict[str, Any]:
    return {"routerType": kind, "steps": list(steps)}


@pytest.mark.parametrize(
    ("obj", "path"),
    [
        (graph(start=node("Sequence")), "spec.nodes"),
        (graph(root=node("Sequence", {"name": "a"})), "spec.nodes.root.steps[0]"),
        (graph(root=node("Sequence", {"serviceName": "a", "nodeName": "b"})), "spec.nodes.root.steps[0]"),
        (graph(root=node("Splitter", {"serviceName": "a"})), "spec.nodes.root.steps[0].weight"),
        (graph(root=node("Splitter", {"serviceName": "a", "weight": 99})), "spec.nodes.root.steps"),
        (
            graph(root=node("Switch", {"name": "x", "serviceName": "a"}, {"name": "x", "serviceName": "b"})),
            "spec.nodes.root.steps[1].name",
        ),
    ],
)
def test_graphs(obj: dict[str, Any], path: str):
    assert paths(validate_graph(obj)) == [path]


def runtime(name: str = "r", **spec: Any) -> dict[str, Any]:
    formats = [{"name": "sklearn", "autoSelect": True, "priority": 1}]
    base = {"containers": [{"name": "kserve-container"}], "protocolVersions": ["v2"], "supportedModelFormats": formats}
    return {"metadata": {"name": name}, "spec": base | spec}


def test_runtimes_of_one_format_need_different_priorities():
    verdict = validate_runtime(runtime("b"), [runtime("a")], None, ClusterServingRuntime)
    assert verdict.message == (
        "spec.supportedModelFormats[0].priority: same priority assigned for the model format sklearn in a;"
        " choose another than 1"
    )
    for other in (runtime("b"), runtime("a", disabled=True), runtime("a", protocolVersions=["v1"])):
        assert not validate_runtime(runtime("b"), [other]).problems
    assert not validate_runtime(runtime("b", disabled=True), [runtime("a")]).problems


def test_runtimes_over_several_nodes():
    assert paths(validate_runtime(runtime(workerSpec={"containers": []}), [])) == ["spec.workerSpec.containers"]
    multi = runtime(workerSpec={"containers": [{"name": "worker-container"}]})
    assert not validate_runtime(multi, []).problems
    assert paths(validate_runtime(runtime(), [], multi)) == ["spec.workerSpec"]
    gpu = {"name": "worker-container", "resources": {"limits": {"example.com/gpu": "1"}}}
    assert paths(validate_runtime(runtime(workerSpec={"containers": [gpu]}), [])) == [
        "spec.workerSpec.containers[0].resources"
    ]
    assert not validate_runtime(runtime(workerSpec={"containers": [gpu]}), [], gpus=["example.com/gpu"]).problems


def trained(memory: str = "1Gi", uri: str = "s3://a") -> dict[str, Any]:
    model = {"storageUri": uri, "framework": "sklearn", "memory": memory}
    return {"metadata": {"name": "m"}, "spec": {"inferenceService": "s", "model": model}}


def test_trained_models():
    assert paths(validate_trained_model(trained(uri="pvc://a"))) == ["spec.model.storageUri"]
    assert paths(validate_trained_model(trained("2Gi"), trained())) == ["spec.model.memory"]
    assert not validate_trained_model(trained("1024Mi"), trained("1Gi")).problems


def cache(name: str, uri: str = "gs://a", namespace: str = "") -> dict[str, Any]:
    spec = {"sourceModelUri": uri, "modelSize": "1Gi", "nodeGroups": ["gpu"]}
    return {"metadata": {"name": name, **({"namespace": namespace} if namespace else {})}, "spec": spec}


def test_caches():
    assert paths(validate_cache(cache("a"), [cache("b")])) == ["spec.sourceModelUri"]
    assert not validate_cache(cache("a"), [cache("a"), cache("b", "gs://b")]).problems
    assert paths(validate_namespace_cache(cache("a"), ["cpu"])) == ["spec.nodeGroups[0]"]
    assert not validate_namespace_cache(cache("a"), ["cpu", "gpu"]).problems


def test_caches_in_use_stay():
    label, namespace = "internal.serving.kserve.io/localmodel", "internal.serving.kserve.io/localmodel-namespace"
    user: dict[str, Any] = {
        "kind": "InferenceService",
        "metadata": {"name": "s", "namespace": "n", "labels": {label: "a"}},
    }
    assert "InferenceService n/s" in validate_deletion(cache("a"), [user]).message
    assert not validate_deletion(cache("b"), [user]).problems
    assert not validate_deletion(cache("a", namespace="n"), [user]).problems
    user["metadata"]["labels"][namespace] = "n"
    assert validate_deletion(cache("a", namespace="n"), [user]).problems


@pytest.mark.parametrize("version", ["v1alpha1", "v1alpha2"])
@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"worker": {"containers": []}}, "spec.worker"),
        ({"parallelism": {"data": 2}}, "spec.parallelism.dataLocal"),
        ({"router": {"scheduler": {"replicas": 0}}}, "spec.router.scheduler.replicas"),
        ({"router": {"scheduler": {"config": {}}}}, "spec.router.scheduler.config"),
        ({"router": {"route": {"group": "a"}}}, "spec.router.route.weight"),
        ({"scaling": {"maxReplicas": 2}}, "spec.scaling"),
        ({"scaling": {"maxReplicas": 2, "keda": {"triggers": []}}}, "spec.scaling.keda.triggers"),
        ({"rolloutStrategy": {"maxSurge": 0, "maxUnavailable": "50%"}}, "spec.rolloutStrategy"),
        ({"rolloutStrategy": {"maxSurge": "200%"}}, "spec.rolloutStrategy.maxSurge"),
        ({"model": {"uri": "hf://a", "lora": {"adapters": [{"uri": "hf://b"}]}}}, "spec.model.lora.adapters[0].name"),
    ],
)
def test_llm_services(spec: dict[str, Any], path: str, version: str):
    assert paths(validate_llm_service(llm(spec, version))) == [path]


def test_the_size_of_a_replica_cannot_change():
    old = llm({"parallelism": {"pipeline": 2}})
    assert paths(validate_llm_service(llm({"parallelism": {"pipeline": 3}}), old)) == ["spec.parallelism"]
    assert not validate_llm_service(llm({"parallelism": {"data": 8, "dataLocal": 4}}), old).problems


def test_llm_configurations_do_not_nest():
    config = llm({"baseRefs": [{"name": "a"}]}) | {"kind": "LLMInferenceServiceConfig"}
    assert paths(validate_llm_config(config)) == ["spec.baseRefs"]


@pytest.mark.parametrize(
    ("version", "limits", "refused"),
    [
        ("2", {"nvidia.com/gpu": "1"}, True),
        ("2", {"nvidia.com/mig-1g.5gb": "1"}, True),
        ("2-gpu", {}, True),
        ("2-gpu", {"nvidia.com/gpu": "1"}, False),
        ("2", {"amd.com/gpu": "1"}, False),
    ],
)
def test_gpu_images_go_with_the_gpus_they_are_built_for(version: str, limits: dict[str, str], refused: bool) -> None:
    spec = {"tensorflow": {"runtimeVersion": version, "resources": {"limits": limits}}}
    modelmesh = {"serving.kserve.io/deploymentMode": "ModelMesh"}
    verdict = validate_service(service({"predictor": spec}, **modelmesh))
    assert paths(verdict) == (["spec.predictor.tensorflow.runtimeVersion"] if refused else [])
