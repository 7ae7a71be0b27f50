"""Graphs and agents on `isvc up`: every kind of node, payloads in a sink, predictions in batches."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

from tests.up.machine import until

ROW = [6.8, 2.8, 4.8, 1.4]


def post(here, url: str, document: object) -> dict:
    return json.loads(here.run("curl", "-sS", url, "-d", json.dumps(document)))


def test_a_request_goes_through_every_kind_of_node(here):
    here.apply(here.example("graph.yaml"))
    here.kubectl("wait", "--for=condition=Ready", "ig/flowers-graph", "--timeout=120s")
    url = here.get("ig", "flowers-graph")["status"]["url"]
    gateway, path = url.split("/serving/", 1)
    assert path == f"{here.namespace}/flowers-graph"
    for address in (url, gateway.replace("localhost", f"flowers-graph-{here.namespace}.localhost")):
        assert post(here, address, {"instances": [ROW]}) == {"predictions": ["versicolor"]}
    compared = post(here, url, {"instances": [ROW], "compare": True})
    assert compared == {"a": {"predictions": [1]}, "b": {"predictions": [1]}}
    nothing = post(here, url, {"neither": 1})
    assert nothing["cause"] == "None of the routes matched with the switch condition"
    here.kubectl("delete", "-f", "examples/graph.yaml")


def test_payloads_are_logged_and_predictions_batched(here):
    here.apply(here.example("logger.yaml"))
    here.wait_ready("event-sink", "logged-iris")
    url = here.get("isvc", "logged-iris")["status"]["url"] + "/v1/models/logged-iris:predict"

    def predict(times: int) -> list[dict]:
        with ThreadPoolExecutor(times) as pool:
            answers = list(pool.map(lambda _: post(here, url, {"instances": [ROW]}), range(times)))
        assert [answer["predictions"] for answer in answers] == [[1]] * times
        return answers

    def logged() -> set[str]:
        predict(1)
        sink = here.kubectl("logs", "-l", "serving.kserve.io/inferenceservice=event-sink", "--tail=-1")
        return {line.split()[0] for line in sink.splitlines() if " logged-iris " in line}

    until(lambda: len({answer["batchId"] for answer in predict(4)}) < 4, "predictions that share a batch")
    kinds = {f"org.kubeflow.serving.inference.{kind}" for kind in ("request", "response")}
    until(lambda: logged() == kinds, "events in the sink")
    here.kubectl("delete", "-f", "examples/logger.yaml")


def test_trained_models_are_loaded_and_unloaded_while_their_server_runs(here):
    here.apply(here.example("trained-models.yaml"))
    here.kubectl("wait", "--for=condition=Ready", "isvc/flower-models", "tm/first", "tm/second", "--timeout=120s")
    url = here.get("isvc", "flower-models")["status"]["url"]

    def answer(model: str) -> dict:
        return post(here, f"{url}/v1/models/{model}:predict", {"instances": [ROW]})

    until(lambda: [answer(model) for model in ("first", "second")] == [{"predictions": [1]}] * 2, "both models")
    before = here.get("pods", labels="serving.kserve.io/inferenceservice=flower-models")["items"][0]["metadata"]["uid"]
    here.kubectl("delete", "tm", "second")
    until(lambda: "does not exist" in answer("second").get("error", ""), "the model to be unloaded")
    assert answer("first") == {"predictions": [1]}
    after = here.get("pods", labels="serving.kserve.io/inferenceservice=flower-models")["items"][0]["metadata"]["uid"]
    assert after == before
    here.kubectl("delete", "-f", "examples/trained-models.yaml", check=False)
