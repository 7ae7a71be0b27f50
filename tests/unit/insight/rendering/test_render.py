"""The planner as a library: documents in, children out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isvc import render
from isvc.insight.rendering import DocumentError
from isvc.kube.objects import Object

EXAMPLES = Path(__file__).parents[4] / "examples"


def service(name: str = "iris", **spec: object) -> Object:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://bucket/model"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": {"model": model}, **spec},
    }


def test_children_of_a_service_come_in_the_same_order_every_time() -> None:
    rendering = render(service("b"), service("a"))
    owners = [child.owner.obj["metadata"]["name"] for child in rendering.children]
    assert owners == sorted(owners, reverse=True)
    kinds, half = [each["kind"] for each in rendering], len(owners) // 2
    assert kinds[:3] == ["Service", "Deployment", "HorizontalPodAutoscaler"]
    assert kinds[:half] == kinds[half:]
    assert list(render(service("b"), service("a"))) == list(rendering)
    assert rendering.problems == ()


async def test_it_can_be_called_from_a_running_event_loop() -> None:
    assert render(service()).child("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]


def test_what_admission_refuses_is_a_problem_of_its_document() -> None:
    rendering = render(service("Not-A-Name"), service("fine"))
    assert {child.owner.obj["metadata"]["name"] for child in rendering.children} == {"fine"}
    assert [problem.document.obj["metadata"]["name"] for problem in rendering.problems] == ["Not-A-Name"]


def test_a_version_that_a_kind_of_ours_does_not_have_is_a_problem() -> None:
    (problem,) = render({**service(), "apiVersion": "serving.kserve.io/v1alpha1"}).problems
    assert problem.message == "there is no InferenceService of serving.kserve.io/v1alpha1; its version is v1beta1"
    elsewhere = {**service(), "apiVersion": "example.com/v1"}
    assert render(elsewhere).problems == ()


def test_a_service_without_a_runtime_is_a_problem() -> None:
    (problem,) = render(service(), shipped=False).problems
    assert "No runtime found" in problem.message or "runtime" in problem.message


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"metadata": {"name": "a", "ownerReferences": ["b"]}}, "ownerReferences must be a list of objects"),
        ({"spec": []}, "spec in body must be of type object"),
        ({"spec": {"containers": {"name": "a"}}}, "spec.containers in body must be of type array"),
        ({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "a", "labels": ["b"]}},
         "labels must map strings to strings"),
    ],
)  # fmt: skip
def test_what_the_cluster_is_said_to_have_is_refused_if_no_api_server_could_have_it(wrong, complaint) -> None:
    runtime = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "ServingRuntime", "metadata": {"name": "a"}}
    with pytest.raises(DocumentError, match=complaint):
        render(service(), extra=[{**runtime, **wrong}])


@pytest.mark.parametrize("namespace", ["", "default"])
def test_a_service_takes_its_model_from_a_cache_that_is_given_after_it(namespace: str) -> None:
    terms = [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]
    group = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LocalModelNodeGroup",
        "metadata": {"name": "disks"},
        "spec": {
            "storageLimit": "1Gi",
            "persistentVolumeSpec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "local": {"path": "/models"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
            },
            "persistentVolumeClaimSpec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        },
    }
    cache = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LocalModelNamespaceCache" if namespace else "LocalModelCache",
        "metadata": {"name": "cached", **({"namespace": namespace} if namespace else {})},
        "spec": {"sourceModelUri": "gs://bucket/model", "modelSize": "1Mi", "nodeGroups": ["disks"]},
    }
    rendering = render(service(), cache, group)
    claims = {each["metadata"]["namespace"] for each in rendering if each["kind"] == "PersistentVolumeClaim"}
    assert (rendering.problems, claims) == ((), {"default", "kserve-localmodel-jobs"})
    assert rendering.child("Deployment")["metadata"]["labels"]["internal.serving.kserve.io/localmodel"] == "cached"


def test_runtimes_and_configuration_of_the_callers() -> None:
    runtime = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {"name": "mine"},
        "spec": {
            "supportedModelFormats": [{"name": "sklearn", "autoSelect": True}],
            "containers": [{"name": "kserve-container", "image": "mine:1"}],
        },
    }
    deployment = render(service(), extra=[runtime]).child("Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "mine:1"


def test_knative_mode_and_a_cluster_without_knative() -> None:
    rendering = render(service(), mode="Knative")
    assert rendering.child("Service", "iris-predictor")["apiVersion"] == "serving.knative.dev/v1"
    assert "Knative Serving is assumed to be installed" in rendering.warnings
    (problem,) = render(service(), mode="Knative", without=["services.serving.knative.dev"]).problems
    assert "Knative" in problem.message


def test_pods_have_what_the_webhook_injects() -> None:
    pod = render(service(), pods=True).child("Pod")
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["storage-initializer"]


def test_a_graph_finds_the_services_beside_it() -> None:
    graph = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "InferenceGraph",
        "metadata": {"name": "path"},
        "spec": {"nodes": {"root": {"routerType": "Sequence", "steps": [{"serviceName": "iris"}]}}},
    }
    rendering = render(graph, service())
    assert rendering.problems == ()
    router = rendering.child("Deployment", "path")
    assert "http://iris-predictor.default" in str(router["spec"]["template"]["spec"]["containers"][0]["args"])


def test_a_trained_model_is_listed_for_its_service() -> None:
    model = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "TrainedModel",
        "metadata": {"name": "m1"},
        "spec": {
            "inferenceService": "host",
            "model": {"framework": "sklearn", "memory": "1Gi", "storageUri": "gs://bucket/m1"},
        },
    }
    memory = {"limits": {"memory": "4Gi"}, "requests": {"memory": "4Gi"}}
    host = service("host", predictor={"model": {"modelFormat": {"name": "sklearn"}, "resources": memory}})
    rendering = render(model, host)
    listed = rendering.child("ConfigMap", "modelconfig-host-0")
    assert '"modelName":"m1"' in listed["data"]["models.json"]


def test_the_examples_render_without_problems() -> None:
    rendering = render(*EXAMPLES.glob("*.yaml"))
    assert rendering.problems == ()
    assert len(rendering) > 10


def test_an_llm_gets_its_server_its_scheduler_and_its_route() -> None:
    router: Object = {"scheduler": {}, "route": {}, "gateway": {}}
    llm = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat"},
        "spec": {"model": {"uri": "hf://org/model", "name": "org/model"}, "replicas": 2, "router": router},
    }
    rendering = render(llm)
    assert rendering.problems == ()
    assert {"Deployment", "Service", "Secret", "HTTPRoute", "InferencePool"} <= {each["kind"] for each in rendering}
    assert set(rendering.child("Secret")["data"].values()) == {""}  # a certificate differs every time


def test_as_stored_a_child_has_defaults_and_an_owner() -> None:
    child = next(each for each in render(service()).children if each.stored["kind"] == "Service")
    assert child.stored["spec"]["sessionAffinity"] == "None"
    assert child.stored["metadata"]["ownerReferences"][0]["name"] == "iris"
    assert "ownerReferences" not in child.manifest["metadata"]


def test_unknown_kinds_and_names() -> None:
    other = {"apiVersion": "example.com/v1", "kind": "Other", "metadata": {"name": "x"}}
    assert "Other x is passed over: nothing is made of a Other" in render(other).warnings
    with pytest.raises(DocumentError, match=r"nonsense is no CRD"):
        render(service(), without=["nonsense"])
    with pytest.raises(LookupError, match="0 children are Pod"):
        render(service()).child("Pod")


@pytest.mark.parametrize("data", [-1, {"ingress": {"a": 1}}, {"ingress": "{"}, {"ingress": "{}"}])
def test_a_bad_configuration_is_told_before_anything_is_rendered(data: object) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inferenceservice-config"}, "data": data}
    for arguments in ({"config": config}, {"extra": [config]}):
        with pytest.raises(DocumentError, match=r"^ConfigMap inferenceservice-config: "):
            render(service(), **arguments)
    with pytest.raises(DocumentError, match=r"^ConfigMap inferenceservice-config: "):
        render(service(), config)


def test_a_value_that_json_cannot_have() -> None:
    with pytest.raises(DocumentError, match="InferenceService has a value that JSON cannot have: "):
        render(service(predictor={"minReplicas": 10**30}))


def test_importing_isvc_loads_nothing_else() -> None:
    code = "import isvc, sys; print([name for name in sys.modules if name.startswith('isvc.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_example_of_the_documentation_passes() -> None:
    page = (Path(__file__).parents[4] / "docs" / "render.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    names: dict[str, object] = {}
    exec(example, names)
    test = names["test_the_predictor_keeps_its_memory"]
    assert callable(test)
    test()
