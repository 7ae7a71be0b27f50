"""A component's children, where the recorded cases leave something to ask."""

import pytest

from isvc.api.codec import decode
from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.engine.policies import SHARED_WITH_AUTOSCALER, WORKLOAD
from isvc.serving.config import Config
from isvc.serving.refused import Refused
from isvc.serving.workload.autoscaler import autoscaler
from isvc.serving.workload.component import Component, Worker
from isvc.serving.workload.deployment import deployments
from isvc.serving.workload.service import http_target_port, services


def component(*containers, annotations=None, worker=None, **scale):
    containers = containers or ({"name": "kserve-container", "image": "i"},)
    return Component(
        "iris-predictor",
        "ns",
        {"a": "b"},
        annotations or {},
        {"containers": list(containers)},
        decode(ComponentExtensionSpec, scale),
        worker,
    )


def deployment(made, config=None):
    return deployments(made, (config or Config()).deploy)[0]


def scaled(annotation, **scale):
    child = autoscaler(component(annotations={"serving.kserve.io/autoscalerClass": annotation}, **scale), Config())
    return child.manifest["spec"] if child else None


def test_replicas_are_left_to_the_autoscaler_unless_there_is_none():
    assert deployment(component(minReplicas=3)).policy == SHARED_WITH_AUTOSCALER
    assert "replicas" not in deployment(component(minReplicas=3)).manifest["spec"]
    fixed = deployment(component(annotations={"serving.kserve.io/autoscalerClass": "none"}, minReplicas=0))
    assert (fixed.policy, fixed.manifest["spec"]["replicas"]) == (WORKLOAD, 0)


def test_absolute_rollout_numbers_are_numbers():
    strategy = '{"defaultRollout": {"maxSurge": "2", "maxUnavailable": "5%%"}}'
    deploy = '{"defaultDeploymentMode": "%s", "deploymentRolloutStrategy": ' + strategy + "}"
    rollout = deployment(component(), Config.parse({"deploy": deploy % "Standard"})).manifest["spec"]["strategy"]
    assert rollout["rollingUpdate"] == {"maxSurge": 2, "maxUnavailable": "5%"}
    too_large = Config.parse({"deploy": deploy.replace('"2"', f'"{2**70}"') % "Standard"})
    rollout = deployment(component(), too_large).manifest["spec"]["strategy"]
    assert rollout["rollingUpdate"]["maxSurge"] == str(2**70), "the API server says what is wrong with it"
    rollout = deployment(component(), Config.parse({"deploy": deploy % "Knative"})).manifest["spec"]["strategy"]
    assert rollout["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}


def test_only_serving_containers_get_a_probe():
    made = deployment(component({"name": "kserve-container", "ports": [{"containerPort": 9}]}, {"name": "side"}))
    server, side = made.manifest["spec"]["template"]["spec"]["containers"]
    assert server["readinessProbe"]["tcpSocket"] == {"port": 9}
    assert "readinessProbe" not in side


def test_a_group_of_nodes_has_workers_and_headless_services_by_generation():
    worker = Worker("iris-predictor-worker", {"w": "1"}, {}, {"containers": [{"name": "worker-container"}]}, 2, 7)
    made = component(worker=worker)
    head, workers = (child.manifest for child in deployments(made, Config().deploy))
    assert workers["spec"]["replicas"] == 2
    assert workers["spec"]["selector"] == {"matchLabels": {"app": "isvc.iris-predictor-worker"}}
    assert workers["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": "0%", "maxSurge": "100%"}
    assert head["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == "25%"
    found = {child.manifest["metadata"]["name"]: child.manifest["spec"] for child in services(made, headless=False)}
    assert set(found) == {"iris-predictor", "iris-head-7", "iris-workers-7"}
    assert found["iris-workers-7"]["selector"] == {"app": "isvc.iris-predictor-worker", "isvc.generation": "7"}
    assert found["iris-head-7"]["clusterIP"] == "None"


def test_headless_addresses_use_the_first_http_port():
    ports = [{"name": "grpc", "containerPort": 9000}, {"name": "web", "containerPort": 7070}]
    service = services(component({"name": "kserve-container", "ports": ports}), headless=True)[0].manifest
    assert service["spec"]["clusterIP"] == "None"
    assert http_target_port(service) == 7070
    only = services(component({"name": "kserve-container", "ports": ports[:1]}), headless=True)[0].manifest
    assert http_target_port(only) == 8080


def test_nobody_scales_external_and_none():
    assert scaled("external") is None
    assert scaled("none") is None
    with pytest.raises(Refused, match="kpa"):
        scaled("kpa")


def test_keda_without_metrics_scales_on_cpu():
    assert scaled("keda")["triggers"] == [{"type": "cpu", "metadata": {"value": "80"}, "metricType": "Utilization"}]


def test_hpa_bounds_and_metrics():
    assert scaled("hpa", minReplicas=0, maxReplicas=0)["minReplicas"] == 1
    assert scaled("hpa", minReplicas=4)["maxReplicas"] == 4
    assert "metrics" not in scaled("hpa", scaleMetric="memory")
    given = {
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}},
            }
        ]
    }
    target = scaled("hpa", autoScaling=given)["metrics"][0]["resource"]["target"]
    assert target == {"type": "AverageValue", "averageValue": "1Gi"}
    given = {"metrics": [{"type": "Resource", "resource": {"name": "memory", "target": {"type": "Value"}}}]}
    assert scaled("hpa", autoScaling=given)["metrics"][0]["resource"]["target"] == {}
