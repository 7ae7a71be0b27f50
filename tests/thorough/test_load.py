"""Replicas on `isvc up` follow the load of real clients."""

from __future__ import annotations

from tests.up.load import load
from tests.up.machine import until


def test_replicas_follow_the_load(here):
    here.apply(here.example("hpa.yaml"))
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
