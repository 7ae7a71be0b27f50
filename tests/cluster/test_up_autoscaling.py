"""What pods use, and what follows from it, on `isvc up`."""

from __future__ import annotations

import json

import pytest
from tests.cluster.load import load
from tests.cluster.local_machine import HAS_TOOLS, machine, running, until

pytestmark = pytest.mark.skipif(not HAS_TOOLS, reason="needs kubectl and curl")


@pytest.fixture(scope="module")
def here(models, tmp_path_factory):
    with running(machine(tmp_path_factory.mktemp("up"), models)) as here:
        yield here


def test_kubectl_top_shows_what_pods_and_nodes_use(here):
    here.kubectl("apply", "-f", "examples/iris.yaml")
    here.wait_ready("iris")
    labels = "serving.kserve.io/inferenceservice=iris"
    until(lambda: "kserve-container" in here.kubectl("top", "pods", "--containers", check=False), "figures of the pod")
    line = here.kubectl("top", "pods", "-l", labels, "--no-headers").split()
    assert line[1].endswith("m")
    assert int(line[2].removesuffix("Mi")) > 20  # a Python process with sklearn in it
    assert here.kubectl("top", "nodes", "--no-headers").startswith("local ")
    pod = line[0]
    metrics = json.loads(here.kubectl("get", "--raw", f"/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/{pod}"))
    assert metrics["metadata"]["labels"]["serving.kserve.io/inferenceservice"] == "iris"
    assert [each["name"] for each in metrics["containers"]] == ["kserve-container"]
    assert "not found" in here.kubectl("get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes/other", check=False)
    assert "No resources found" in here.kubectl("top", "pods", "-l", "app=other", check=False)
    here.kubectl("delete", "-f", "examples/iris.yaml")


def test_replicas_follow_the_load(here):
    here.kubectl("apply", "-f", "examples/hpa.yaml")
    here.wait_ready("busy-iris")
    url = here.get("isvc", "busy-iris")["status"]["url"] + "/v1/models/busy-iris:predict"
    scaler = "hpa/busy-iris-predictor"
    with load(url):
        until(lambda: here.get(scaler)["status"].get("desiredReplicas") == 3, "three replicas")
    status = here.get(scaler)["status"]
    conditions = {each["type"]: each for each in status["conditions"]}
    assert conditions["ScalingActive"]["reason"] == "ValidMetricFound"
    assert conditions["AbleToScale"]["status"] == "True"
    assert status["currentMetrics"][0]["resource"]["name"] == "cpu"
    reasons = here.kubectl("get", "events", "--field-selector=reason=SuccessfulRescale", "-o=jsonpath={..message}")
    assert "above target" in reasons
    until(lambda: here.get("deploy", "busy-iris-predictor")["status"].get("readyReplicas") == 3, "three ready pods")
    here.kubectl("delete", "-f", "examples/hpa.yaml")


def test_an_autoscaler_says_why_it_cannot_scale(here):
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "nobody"}
    spec = {"scaleTargetRef": target, "maxReplicas": 2}
    here.apply(
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "lost"}, "spec": spec}
    )

    def reason() -> str | None:
        conditions = here.get("hpa", "lost").get("status", {}).get("conditions") or []
        return next((each["reason"] for each in conditions if each["type"] == "AbleToScale"), None)

    until(lambda: reason() == "FailedGetScale", "the reason")
    here.kubectl("delete", "hpa", "lost")
