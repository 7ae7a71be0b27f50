"""Knative mode on `isvc up`: no pods without requests, held requests, shares of traffic, stopping."""

from __future__ import annotations

import json
import time

import yaml
from tests.up.load import ask, ask_at_once, load
from tests.up.machine import until

ANSWER = (200, b'{"predictions":[1]}')


def predict_url(here, name: str) -> str:
    return here.get("isvc", name)["status"]["url"] + f"/v1/models/{name}:predict"


def pods(here, service: str) -> list:
    return here.get("pods", labels=f"serving.kserve.io/inferenceservice={service}")["items"]


def service(name: str, **predictor: object) -> dict:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}
    annotations = {"serving.kserve.io/deploymentMode": "Knative", "autoscaling.knative.dev/window": "6s"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"predictor": {"model": model, **predictor}},
    }


def test_to_zero_and_back_without_losing_a_request(here, record_property):
    here.apply(here.example("scale-to-zero.yaml"))
    here.wait_ready("sleepy-iris")
    url = predict_url(here, "sleepy-iris")
    until(lambda: pods(here, "sleepy-iris") == [], "no pods")
    revision = here.get("revisions", "sleepy-iris-predictor-00001")
    active = next(each for each in revision["status"]["conditions"] if each["type"] == "Active")
    assert (active["status"], active["reason"]) == ("False", "NoTraffic")
    here.wait_ready("sleepy-iris")  # a service without pods is ready

    began = time.monotonic()
    assert ask(url) == ANSWER
    record_property("cold start, seconds", round(time.monotonic() - began, 2))
    until(lambda: pods(here, "sleepy-iris") == [], "no pods again")
    assert ask_at_once(url, 30) == [ANSWER] * 30
    with load(url, clients=12) as failures:  # more than three times what a pod takes at once
        until(lambda: here.get("rev", "sleepy-iris-predictor-00001")["status"]["actualReplicas"] == 2, "two pods")
    assert failures == []
    here.kubectl("delete", "-f", "examples/scale-to-zero.yaml")
    until(lambda: here.get("ksvc,rev,deploy")["items"] == [], "nothing left")


def test_a_canary_gets_its_share_and_is_promoted(here):
    here.apply(service("shared", minReplicas=1))
    here.wait_ready("shared")
    here.apply(service("shared", minReplicas=1, canaryTrafficPercent=20, labels={"version": "2"}))

    def traffic() -> dict[str, int]:
        entries = here.get("isvc", "shared")["status"]["components"]["predictor"].get("traffic") or []
        return {each["revisionName"]: each["percent"] for each in entries}

    until(lambda: traffic() == {"shared-predictor-00002": 20, "shared-predictor-00001": 80}, "both revisions")
    here.wait_ready("shared")
    route = here.get("httproute", "shared-predictor")["spec"]["rules"][-1]
    assert {each["name"]: each["weight"] for each in route["backendRefs"]} == traffic()
    url = predict_url(here, "shared")
    tagged = url.split("/")[2].replace("localhost", f"prev-shared-predictor-{here.namespace}.localhost")
    said = here.run("curl", "-sS", "-H", f"Host: {tagged}", f"http://{url.split('/')[2]}/v1/models/shared")
    assert json.loads(said) == {"name": "shared", "ready": True}
    assert ask_at_once(url, 10) == [(200, ANSWER[1])] * 10
    here.apply(service("shared", minReplicas=1, labels={"version": "2"}))
    until(lambda: traffic() == {"shared-predictor-00002": 100}, "the promotion")
    old = "shared-predictor-00001-deployment"
    until(lambda: here.get("deploy", old)["spec"]["replicas"] == 0, "the old revision to go")
    here.kubectl("delete", "isvc", "shared")


def test_a_stopped_service_has_nothing_and_comes_back(here):
    here.apply(service("halted", minReplicas=1))
    here.wait_ready("halted")
    here.kubectl("annotate", "isvc", "halted", "serving.kserve.io/stop=true")
    until(lambda: here.get("ksvc")["items"] == [] and pods(here, "halted") == [], "everything to go")
    conditions = {each["type"]: each["status"] for each in here.get("isvc", "halted")["status"]["conditions"]}
    assert conditions["Stopped"] == "True"
    here.kubectl("annotate", "isvc", "halted", "serving.kserve.io/stop-")
    here.wait_ready("halted")
    assert ask(predict_url(here, "halted")) == ANSWER
    here.kubectl("delete", "isvc", "halted")


def test_a_revision_that_cannot_start_leaves_traffic_where_it_was(here):
    here.apply(service("cautious", minReplicas=1))
    here.wait_ready("cautious")
    broken = service("cautious", minReplicas=1)
    broken["spec"]["predictor"]["model"]["storageUri"] = "pvc://models/nothing-here"
    here.apply(broken)

    def newest() -> dict:
        return here.get("ksvc", "cautious-predictor")["status"]

    until(lambda: newest()["latestCreatedRevisionName"] == "cautious-predictor-00002", "the second revision")
    assert newest()["latestReadyRevisionName"] == "cautious-predictor-00001"
    assert newest()["traffic"][0]["revisionName"] == "cautious-predictor-00001"
    assert ask(predict_url(here, "cautious")) == ANSWER
    here.kubectl("delete", "isvc", "cautious")


def test_an_image_that_nothing_here_runs_is_told_by_every_kind_of_knative(here):
    container = {"image": "example.com/nobody/knows"}
    metadata = {"name": "unknown-image"}
    spec = {"template": {"spec": {"containers": [container]}}}
    here.apply({"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": metadata, "spec": spec})

    def failing(kind: str, name: str = "unknown-image") -> dict[str, tuple[str, str]]:
        conditions = here.get(kind, name).get("status", {}).get("conditions", [])
        return {each["type"]: (each["reason"], each["message"]) for each in conditions if each["status"] == "False"}

    until(lambda: {"ConfigurationsReady", "RoutesReady", "Ready"} <= failing("ksvc").keys(), "the cause")
    reason, message = failing("revision", "unknown-image-00001")["ContainerHealthy"]
    assert reason == "ContainerMissing"
    assert message.startswith('Unable to fetch image "example.com/nobody/knows": no local program is known for')
    told = failing("ksvc")
    assert told["ConfigurationsReady"][0] == "RevisionFailed"
    assert message in told["ConfigurationsReady"][1]
    assert told["RoutesReady"] == told["Ready"]
    assert told["Ready"][0] == "RevisionMissing"

    with here.programs_of_images({container["image"]: {"command": ["python", "-m", "http.server", "{port}"]}}):
        until(lambda: failing("ksvc") == {} and here.get("ksvc", "unknown-image")["status"]["conditions"], "no cause")
        here.kubectl("wait", "ksvc/unknown-image", "--for=condition=Ready", "--timeout=60s")
        here.kubectl("delete", "ksvc", "unknown-image")


def in_knative_mode(manifests: str) -> str:
    documents = list(yaml.safe_load_all(manifests))
    for document in documents:
        if document["kind"] in ("InferenceService", "InferenceGraph"):
            annotations = document["metadata"].setdefault("annotations", {})
            annotations["serving.kserve.io/deploymentMode"] = "Knative"
    return yaml.safe_dump_all(documents)


def test_graphs_and_transformers_run_in_knative_mode(here):
    for example in ("graph.yaml", "iris-transformer.yaml"):
        here.apply(in_knative_mode(here.example(example)))
    here.kubectl("wait", "--for=condition=Ready", "ig/flowers-graph", "isvc/flowers", "--timeout=120s")
    url = here.get("ig", "flowers-graph")["status"]["url"]
    port = url.rpartition(":")[2]
    for address in (url, f"http://localhost:{port}/serving/{here.namespace}/flowers-graph"):
        said = here.run("curl", "-sS", address, "-d", '{"instances": [[6.8, 2.8, 4.8, 1.4]]}')
        assert json.loads(said) == {"predictions": ["versicolor"]}
    answered = ask(predict_url(here, "flowers"), b'{"instances": [[68, 28, 48, 14]]}')
    assert answered == (200, b'{"predictions":["versicolor"]}')
    here.kubectl("delete", "ig,isvc", "--all")


def test_payloads_are_logged_in_knative_mode(here):
    here.apply(in_knative_mode(here.example("logger.yaml")))
    here.wait_ready("event-sink", "logged-iris")
    assert ask(predict_url(here, "logged-iris"))[0] == 200

    def logged() -> str:
        return here.kubectl("logs", "-l", "serving.kserve.io/inferenceservice=event-sink", "--tail=-1")

    until(lambda: ".request logged-iris" in logged() and ".response logged-iris" in logged(), "events in the sink")
    here.kubectl("delete", "isvc", "--all")
