"""What pods use, and what follows from it, on `isvc up`."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.up.load import ask_at_once
from tests.up.machine import EXAMPLES, until


def test_kubectl_top_shows_what_pods_and_nodes_use(here):
    here.apply(here.example("iris.yaml"))
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


def test_a_service_in_standard_mode_sleeps_and_a_request_wakes_it(here):
    here.apply(here.example("scale-to-zero-standard.yaml"))
    here.wait_ready("dozing-iris")
    url = here.get("isvc", "dozing-iris")["status"]["url"] + "/v1/models/dozing-iris:predict"
    labels = "serving.kserve.io/inferenceservice=dozing-iris"

    def reason() -> str:
        ready = next(
            each for each in here.get("isvc", "dozing-iris")["status"]["conditions"] if each["type"] == "Ready"
        )
        return ready.get("reason", "")

    def times_not_ready() -> int:
        about = here.get("isvc", "dozing-iris")["metadata"]["uid"]
        events = [each for each in here.get("events")["items"] if each["involvedObject"].get("uid") == about]
        return sum(each.get("count", 1) for each in events if each["reason"] == "InferenceServiceNotReady")

    until(lambda: here.get("pods", labels=labels)["items"] == [], "no pods")
    until(lambda: reason() == "Asleep", "that it sleeps")
    away = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []}
    here.apply({**away, "metadata": {"name": "away", "labels": {"kubernetes.io/service-name": "keda-operator"}}})
    until(lambda: reason() == "KEDAUnavailable", "that nobody wakes it")
    told = here.isvc("explain", "dozing-iris").stdout
    assert "is not ready: no pod of keda-operator is ready" in told
    assert "to mend it: repair the Deployment keda-operator" in told
    here.kubectl("delete", "endpointslice", "away")
    until(lambda: reason() == "Asleep", "that it sleeps again")
    assert ask_at_once(url, 10) == [(200, b'{"predictions":[1]}')] * 10
    assert times_not_ready() == 1  # when nobody would have woken it, and not while it woke
    here.kubectl("delete", "-f", "examples/scale-to-zero-standard.yaml")
