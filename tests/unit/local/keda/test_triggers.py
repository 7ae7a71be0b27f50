"""Triggers of ScaledObjects, answers of Prometheus, and the annotations that pause."""

from __future__ import annotations

import json

import pytest
from tests.unit.controllers.llmisvc.workload.test_waking import asleep, triggers

from isvc.kube.objects import Key, Object
from isvc.local.autoscaling.replicas import CannotCompute
from isvc.local.keda.prometheus import read_value
from isvc.local.keda.scaled_objects import PAUSED, PAUSED_REPLICAS, hpa_of, paused_at
from isvc.local.keda.triggers import (
    BadTrigger,
    has_resources_only,
    hpa_metrics,
    prometheus_triggers,
    queue_triggers,
    request_triggers,
)

PROMETHEUS: Object = {
    "type": "prometheus",
    "metadata": {"serverAddress": "http://p:9090/", "query": "sum(up)", "threshold": "2.5"},
}


def scaled(*triggers: Object, annotations: dict[str, str] | None = None, **spec: object) -> Object:
    metadata = {"name": "s", "namespace": "ns", "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"scaleTargetRef": {"name": "d"}, "triggers": list(triggers), **spec}}


def cpu(value: str, kind: str = "Utilization", **more: str) -> Object:
    return {"type": "cpu", "metricType": kind, "metadata": {"value": value, **more}}


def test_triggers_become_metrics_of_an_hpa():
    found = hpa_metrics(scaled(cpu("80"), PROMETHEUS, cpu("200m", "AverageValue", containerName="c")))
    assert [metric["type"] for metric in found] == ["ContainerResource", "External", "Resource"]
    assert found[0]["containerResource"]["target"] == {"type": "AverageValue", "averageValue": "200m"}
    assert found[1]["external"]["metric"] == {
        "name": "s1-prometheus",
        "selector": {"matchLabels": {"scaledobject.keda.sh/name": "s"}},
    }
    assert found[1]["external"]["target"] == {"type": "AverageValue", "averageValue": "2500m"}
    assert found[2]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
    assert has_resources_only(scaled(cpu("80")))
    assert not has_resources_only(scaled(cpu("80"), PROMETHEUS))


def test_the_queue_that_is_planned_for_an_llm_is_known_without_prometheus():
    found = scaled(PROMETHEUS, *triggers(asleep())["llama-kserve-keda"])
    assert [(each.metric, each.pool) for each in queue_triggers(found)] == [
        ("s2-prometheus", Key("models", "llama-inference-pool"))
    ]
    assert [each.metric for each in prometheus_triggers(found)] == ["s0-prometheus"]


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ({"type": "kafka"}, "a trigger of type kafka needs KEDA itself"),
        (cpu("much"), "needs a Utilization"),
        (cpu("80", "Value"), "needs a Utilization"),
        ({"type": "prometheus", "metadata": {"query": "up"}}, "needs serverAddress, threshold"),
        ({**PROMETHEUS, "authenticationRef": {"name": "a"}}, "asks for authentication"),
        ({**PROMETHEUS, "metadata": {**PROMETHEUS["metadata"], "threshold": "x"}}, "threshold that is no number"),
    ],
)
def test_what_cannot_be_used_is_named(trigger: Object, message: str):
    with pytest.raises(BadTrigger, match=message):
        hpa_metrics(scaled(trigger))


def test_the_hpa():
    made = hpa_of(scaled(cpu("80"), minReplicaCount=0, maxReplicaCount=7), [])
    assert made["metadata"]["name"] == "keda-hpa-s"
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (1, 7)
    assert made["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}


def answer(result: object, kind: str = "vector") -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()


def test_answers_of_prometheus():
    (trigger,) = prometheus_triggers(scaled(PROMETHEUS))
    assert trigger.server == "http://p:9090"
    assert read_value(answer([{"value": [1, "3.5"]}]), trigger) == 3.5
    assert read_value(answer([1, "7"], "scalar"), trigger) == 7
    assert read_value(answer([]), trigger) == 0
    assert read_value(answer([{"value": [1, "NaN"]}]), trigger) == 0


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[]",
        b"{}",
        answer([{"value": [1]}]),
        answer([{"value": [1, "x"]}]),
        answer([{"value": [1, "1"]}, {"value": [1, "2"]}]),
    ],
)
def test_what_is_no_value_is_refused(body: bytes):
    (trigger,) = prometheus_triggers(scaled(PROMETHEUS))
    with pytest.raises(CannotCompute):
        read_value(body, trigger)


def test_no_value_may_be_an_error():
    strict = {**PROMETHEUS, "metadata": {**PROMETHEUS["metadata"], "ignoreNullValues": "false"}}
    (trigger,) = prometheus_triggers(scaled(strict))
    with pytest.raises(CannotCompute, match="has no value"):
        read_value(answer([]), trigger)


@pytest.mark.parametrize(
    ("annotations", "at"),
    [({}, None), ({PAUSED: "true"}, -1), ({PAUSED: "false"}, None), ({PAUSED_REPLICAS: "0", PAUSED: "true"}, 0)],
)
def test_pausing(annotations: dict[str, str], at: int | None):
    assert paused_at(scaled(annotations=annotations)) == at


@pytest.mark.parametrize("threshold", ["nan", "inf", "1e999"])
def test_a_threshold_is_finite(threshold: str):
    metadata = {"serverAddress": "http://x", "query": "q", "threshold": threshold}
    with pytest.raises(BadTrigger, match="threshold that is no number"):
        hpa_metrics(scaled({"type": "prometheus", "metadata": metadata}))


@pytest.mark.parametrize("number", ["²", "9" * 5_000], ids=["superscript", "many digits"])
def test_what_only_looks_like_a_whole_number_is_none(number: str):
    with pytest.raises(BadTrigger, match="whole number"):
        hpa_metrics(scaled(cpu(number)))
    with pytest.raises(BadTrigger, match="whole number"):
        paused_at(scaled(annotations={PAUSED_REPLICAS: number}))


def test_pausing_at_no_number():
    with pytest.raises(BadTrigger, match="no whole number"):
        paused_at(scaled(annotations={PAUSED_REPLICAS: "some"}))


def test_requests_become_the_metrics_that_their_route_has_targets_for():
    requests = {"type": "external-push", "metadata": {"scalerAddress": "a:1", "interceptorRoute": "iris"}}
    targets = {"concurrency": {"targetValue": 4}, "requestRate": {"targetValue": 50}}
    route = {"spec": {"scalingMetric": targets}}
    found = [each["external"] for each in hpa_metrics(scaled(requests), {"iris": route})]
    assert [each["metric"]["name"] for each in found] == ["s0-concurrency", "s0-rate"]
    assert [each["target"]["averageValue"] for each in found] == ["4", "50"]
    with pytest.raises(BadTrigger, match="no triggers are defined"):
        hpa_metrics(scaled(requests), {})
    with pytest.raises(BadTrigger, match="needs interceptorRoute"):
        list(request_triggers(scaled({"type": "external-push", "metadata": {}})))
