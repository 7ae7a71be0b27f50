"""What pods use, and what follows from it, on `isvc up`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.up.load import load
from tests.up.machine import EXAMPLES, until


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
    figures = f"/apis/metrics.k8s.io/v1beta1/namespaces/{here.namespace}/pods/{pod}"
    metrics = json.loads(here.kubectl("get", "--raw", figures))
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
    reasons = ("get", "events", "--field-selector=reason=SuccessfulRescale", "-o=jsonpath={..message}")
    until(lambda: "above target" in here.kubectl(*reasons), "an event that says why")
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


@dataclass
class Prometheus:
    """A server with Prometheus' query API, and one value."""

    address: str
    value: float = 0.0


@contextmanager
def prometheus() -> Iterator[Prometheus]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            result = [{"metric": {}, "value": [0, str(served.value)]}]
            body = json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}}).encode()
            self.send_response(200 if self.path.startswith("/api/v1/query?query=") else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served = Prometheus(f"http://localhost:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield served
        server.shutdown()


def conditions(obj: dict) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj.get("status", {}).get("conditions") or []}


def test_keda_follows_a_query(here):
    with prometheus() as server:
        server.value = 10
        here.apply((EXAMPLES / "keda.yaml").read_text().replace("http://localhost:9090", server.address))
        here.wait_ready("queued-iris")
        until(lambda: here.get("deploy", "queued-iris-predictor")["status"].get("readyReplicas") == 3, "three replicas")
        found = here.get("so", "queued-iris-predictor")
        assert conditions(found) == {"Ready": "True", "Active": "True", "Fallback": "False", "Paused": "False"}
        assert found["status"]["externalMetricNames"] == ["s0-prometheus"]
        scaler = here.get("hpa", found["status"]["hpaName"])
        assert scaler["status"]["currentMetrics"][0]["external"]["metric"]["name"] == "s0-prometheus"
    here.kubectl("delete", "isvc", "queued-iris")
    until(lambda: here.get("so,hpa")["items"] == [], "nothing left")


def test_keda_takes_the_last_replica_and_brings_it_back(here):
    external = {"serving.kserve.io/autoscalerClass": "external"}
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}
    iris = {"metadata": {"name": "seldom", "annotations": external}, "spec": {"predictor": {"model": model}}}
    here.apply({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", **iris})
    here.wait_ready("seldom")

    def replicas() -> int:
        return here.get("deploy", "seldom-predictor")["spec"]["replicas"]

    with prometheus() as server:
        metadata = {"serverAddress": server.address, "query": "sum(waiting)", "threshold": "1"}
        spec = {
            "scaleTargetRef": {"name": "seldom-predictor"},
            "minReplicaCount": 0,
            "pollingInterval": 1,
            "cooldownPeriod": 1,
            "triggers": [{"type": "prometheus", "metadata": metadata}],
        }
        here.apply(
            {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "seldom"}, "spec": spec}
        )
        until(lambda: replicas() == 0, "no replicas")
        server.value = 1
        until(lambda: replicas() == 1, "a replica")
        until(lambda: conditions(here.get("so", "seldom"))["Active"] == "True", "that it is active")
        here.kubectl("annotate", "so", "seldom", "autoscaling.keda.sh/paused-replicas=2")
        until(lambda: replicas() == 2, "the replicas to pause at")
        until(lambda: conditions(here.get("so", "seldom"))["Paused"] == "True", "the pause")
        until(lambda: here.get("hpa")["items"] == [], "no HPA while paused")
    here.kubectl("annotate", "so", "seldom", "autoscaling.keda.sh/paused-replicas-")
    until(lambda: conditions(here.get("so", "seldom"))["Ready"] == "False", "that Prometheus is gone")
    assert replicas() == 2
    here.kubectl("delete", "so/seldom", "isvc/seldom")
