"""Requests as a metric: how it is asked for, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.serving.workload.test_workload import component

from isvc.kube.objects import Object
from isvc.serving.config import Config, ConfigError
from isvc.serving.workload.autoscaler import autoscaler
from isvc.serving.workload.component import Component, Worker, WorkloadRefused
from isvc.serving.workload.http_metric import HttpMetric, check_ports, http_metric, interceptor_route
from isvc.serving.workload.service import services

ASKED = "isvc.dev/http-metric"


def asking(text: str, *containers: Object, **scale: Any) -> Component:
    annotations = {ASKED: text, "serving.kserve.io/autoscalerClass": "keda"}
    return component(*containers, annotations=annotations, **scale)


@pytest.mark.parametrize(
    ("text", "metric"),
    [
        ("", None),
        ("concurrency=10", HttpMetric(concurrency=10)),
        ("requestRate=50,cooldown=0", HttpMetric(request_rate=50, cooldown=0)),
        ("concurrency=1, requestRate=2 , cooldown=30", HttpMetric(1, 2, 30)),
        ("concurrency=1,wait=90", HttpMetric(1, wait=90)),
    ],
)
def test_how_it_is_asked_for(text: str, metric: HttpMetric | None) -> None:
    assert http_metric(asking(text)) == metric


@pytest.mark.parametrize(
    "text",
    ["10", "concurrency", "concurrency=0", "concurrency=-1", "concurrency=²", "cooldown=3,wait=5", "latency=1", ","],
)
def test_what_cannot_be_read_is_refused_with_what_could(text: str) -> None:
    with pytest.raises(WorkloadRefused, match="must be concurrency=<requests>, requestRate="):
        http_metric(asking(text))


def test_nobody_but_keda_can_do_it() -> None:
    with pytest.raises(WorkloadRefused, match=r"needs serving\.kserve\.io/autoscalerClass: keda"):
        http_metric(component(annotations={ASKED: "concurrency=1"}))


def test_a_group_on_several_nodes_does_not_sleep() -> None:
    worker = Worker("w", {}, {}, {}, 1, 1)
    with pytest.raises(WorkloadRefused, match="several nodes"):
        http_metric(asking("concurrency=1", worker=worker))


def test_two_protocols_would_lose_requests_of_one() -> None:
    ports = [{"containerPort": 8080}, {"containerPort": 9000, "name": "h2c"}]
    both = asking("concurrency=1", {"name": "kserve-container", "image": "i", "ports": ports})
    with pytest.raises(WorkloadRefused, match="an HTTP and a gRPC port"):
        check_ports(services(both, headless=False)[0].manifest)
    alone = asking("concurrency=1", {"name": "kserve-container", "image": "i", "ports": ports[1:]})
    check_ports(services(alone, headless=False)[0].manifest)


def test_the_scaled_object_follows_the_interceptor_beside_other_metrics() -> None:
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
    asked = asking("concurrency=1,cooldown=60", minReplicas=0, autoScaling={"metrics": metrics})
    child = autoscaler(asked, Config(), http_metric(asked))
    assert child is not None
    spec = child.manifest["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"]) == (0, 1)
    assert (spec["cooldownPeriod"], spec["initialCooldownPeriod"]) == (60, 60)
    requests, cpu = spec["triggers"]
    assert requests == {
        "type": "external-push",
        "metadata": {"scalerAddress": "keda-add-ons-http-external-scaler.keda:9090", "interceptorRoute": asked.name},
    }
    assert cpu["type"] == "cpu"


@pytest.mark.parametrize(("headless", "port"), [(False, 80), (True, 9000)])
def test_the_interceptor_asks_a_port_that_answers(headless: bool, port: int) -> None:
    asked = asking("concurrency=1", {"name": "kserve-container", "image": "i", "ports": [{"containerPort": 9000}]})
    service = services(asked, headless=headless)[0].manifest
    route = interceptor_route(asked, HttpMetric(1), service, ["iris.example.com"], None).manifest["spec"]
    assert route["target"] == {"service": "iris-predictor", "port": port}
    assert route["rules"][0]["hosts"][-1] == "iris.example.com"
    assert route["timeouts"] == {"readiness": "600s", "responseHeader": "0s"}


@pytest.mark.parametrize("text", ["", "proxy", "proxy.keda", "proxy.keda:0", "proxy.keda:x", "a.b.c:1", ".keda:1"])
def test_an_address_that_is_none_is_no_configuration(text: str) -> None:
    with pytest.raises(ConfigError, match=r"httpInterceptor must be <service>\.<namespace>:<port>"):
        Config.parse({"autoscaler": f'{{"httpInterceptor": "{text}"}}'})
