"""What pods use, and what follows from it, on `isvc up`."""

from __future__ import annotations

import json

import pytest
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
