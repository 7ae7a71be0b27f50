"""LLMInferenceServices whom a request wakes: what holds it, what sees it, and what would lose it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from tests.unit.controllers.llmisvc.workload.workloads import POD, children, observed_with, workload

from isvc.controllers.llmisvc.area import Applied
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.scheduler.plan import plan as plan_scheduler
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.controllers.llmisvc.workload.plan import plan
from isvc.controllers.llmisvc.workload.report import report
from isvc.engine.outcome import Outcome
from isvc.kube import durations
from isvc.kube.conditions import find
from isvc.kube.objects import Object
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving.config import Config
from isvc.serving.config.sections import PrometheusConfig, VariantAutoscalerConfig
from isvc.serving.thirdparty import INFERENCE_POOLS, SCALED_OBJECTS

ASKING = {"annotations": {"isvc.dev/wake-on-request": "true"}}
TRIGGER = {"type": "cpu", "metadata": {"value": "60"}}
IDLE = {"minReplicas": 1, "maxReplicas": 4, "keda": {"idleReplicaCount": 0, "triggers": [TRIGGER]}}
BY_VARIANT = {"minReplicas": 1, "maxReplicas": 4, "wva": {"keda": {"idleReplicaCount": 0}}}
PICKER = {"containers": [{"name": "main", "image": "picker", "args": ["--v", "2"]}]}
VERSION = {"app.kubernetes.io/version": "0.10.0"}


def asleep(
    metadata: Object | None = None, scheduler: Object | None = None, route: Object | None = None, **spec: Any
) -> Observed:
    picker = {"template": PICKER, "annotations": VERSION, "pool": {"spec": {}}, **(scheduler or {})}
    router: Object = {"scheduler": picker}
    if route is not None:
        router["route"] = {"http": {"spec": route}}
    given = {"scaling": IDLE, "router": router, **spec}
    observed = workload(metadata=ASKING if metadata is None else metadata, **given)
    prometheus = VariantAutoscalerConfig(prometheus=PrometheusConfig(url="http://prometheus:9090"))
    config = msgspec.structs.replace(Config(), variant_autoscaler=prometheus)
    return observed_with(observed, config=config, served=frozenset({SCALED_OBJECTS, INFERENCE_POOLS}))


def triggers(observed: Observed) -> dict[str, list[Object]]:
    found = children(plan(observed))
    return {name: manifest["spec"]["triggers"] for (kind, name), manifest in found.items() if kind == "ScaledObject"}


def picker_config(observed: Observed) -> Object:
    [container] = children(plan_scheduler(observed))["Deployment", "llama-kserve-router-scheduler"]["spec"]["template"][
        "spec"
    ]["containers"]
    config: Object = yaml.safe_load(container["args"][container["args"].index("--config-text") + 1])
    return config


@pytest.mark.parametrize(("scaling", "others"), [(IDLE, "cpu"), (BY_VARIANT, "prometheus")])
def test_keda_sees_requests_that_wait_or_run_beside_what_scales_otherwise(scaling: Object, others: str) -> None:
    first, waking = triggers(asleep(scaling=scaling))["llama-kserve-keda"]
    assert first["type"] == others
    assert (waking["type"], waking["name"]) == ("prometheus", "waiting-requests")
    asked = waking["metadata"]
    assert asked["serverAddress"] == "http://prometheus:9090"
    assert asked["activationThreshold"] == "0"
    pool = 'inference_pool="llama-inference-pool",namespace="models"'
    assert f"sum(llm_d_epp_flow_control_queue_size{{{pool}}} or vector(0))" in asked["query"]


def test_prefill_and_decode_wake_together() -> None:
    found = triggers(asleep(prefill={"template": POD, "scaling": IDLE}))
    decode, prefill = found["llama-kserve-keda"], found["llama-kserve-prefill-keda"]
    assert decode[-1] == prefill[-1]


def test_the_picker_holds_requests_for_as_long_as_a_start_takes() -> None:
    config = picker_config(asleep())
    assert config["featureGates"] == ["flowControl"]
    assert config["flowControl"] == {"defaultRequestTTL": "600s"}
    assert "featureGates" not in picker_config(asleep(metadata={"annotations": {}}))


def test_a_configuration_of_ones_own_is_kept_beside_it() -> None:
    inline = {"kind": "EndpointPickerConfig", "featureGates": ["other"], "flowControl": {"defaultRequestTTL": "20m"}}
    config = picker_config(asleep(scheduler={"config": {"inline": inline}}))
    assert config["featureGates"] == ["other", "flowControl"]
    assert config["flowControl"] == {"defaultRequestTTL": "20m"}


@pytest.mark.parametrize(("metadata", "mode"), [(None, "FailClose"), ({"annotations": {}}, "FailOpen")])
def test_no_request_goes_past_the_picker_whatever_the_preset_says(metadata: Object | None, mode: str) -> None:
    preset = {"pool": {"spec": {"endpointPickerRef": {"name": "p", "failureMode": "FailOpen"}}}}
    found = children(plan_scheduler(asleep(metadata=metadata, scheduler=preset)))
    [pool] = [manifest for (kind, _), manifest in found.items() if kind == "InferencePool"]
    assert pool["spec"]["endpointPickerRef"] == {"name": "p", "failureMode": mode}


@pytest.mark.parametrize(
    ("given", "because"),
    [
        ({"router": {}}, "requests wait in the endpoint picker"),
        ({"scaling": {"maxReplicas": 2, "keda": {"triggers": [TRIGGER]}}}, "nothing sleeps: the main workload needs"),
        ({"scaling": {"maxReplicas": 2, "wva": {"hpa": {}}}}, "nothing sleeps: the main workload needs"),
        ({"prefill": {"template": POD}}, "prefill and decode sleep together: the prefill workload needs"),
        (
            {"route": {"rules": [{"timeouts": {"request": "0s"}}, {"timeouts": {"request": "1m30s"}}]}},
            "the route ends requests after 1m30s",
        ),
    ],
)
def test_what_would_lose_requests_is_refused(given: dict[str, Any], because: str) -> None:
    stop = plan(asleep(**given)).stop
    assert stop is not None
    assert (stop.condition, stop.reason) == ("MainWorkloadReady", "RequestsWouldBeLost")
    assert because in stop.message


@pytest.mark.parametrize(
    ("scheduler", "because"),
    [
        ({"annotations": {"app.kubernetes.io/version": "0.8.0"}}, "0.9 or later, and this is 0.8.0"),
        ({"template": {"containers": [{"name": "main", "args": ["--config-file", "/c"]}]}}, "has to be inline"),
    ],
)
def test_a_picker_that_cannot_hold_them_is_refused(scheduler: Object, because: str) -> None:
    stop = plan_scheduler(asleep(scheduler=scheduler)).stop
    assert stop is not None
    assert because in stop.message


@pytest.mark.parametrize(
    ("replicas", "there", "before", "reason"),
    [(0, 0, "", "Asleep"), (1, 0, "Asleep", "Waking"), (1, 1, "Waking", None), (1, 0, "", None)],
)
def test_asleep_and_waking_are_ready_and_say_so(replicas: int, there: int, before: str, reason: str | None) -> None:
    available = {"availableReplicas": there, "conditions": [{"type": "Available", "status": "True"}]}
    live = {(DEPLOYMENTS, "llama-kserve"): {"spec": {"replicas": replicas}, "status": available}}
    observed = observed_with(asleep(), live=live)
    said = {"type": "MainWorkloadReady", "status": "True", "reason": before}
    edit = StatusEdit({"conditions": [said]}, "2026-01-01T00:00:00Z")
    report(edit, plan(observed), Applied(observed, Outcome()))
    condition = find(edit.conditions.result(), "MainWorkloadReady") or {}
    assert (condition["status"], condition.get("reason")) == ("True", reason)


@pytest.mark.parametrize(("scaling", "replicas"), [(None, 1), (IDLE, None)])
def test_whom_keda_no_longer_scales_is_woken(scaling: Object | None, replicas: int | None) -> None:
    live = {
        (DEPLOYMENTS, "llama-kserve"): {"spec": {"replicas": 0}},
        (SCALED_OBJECTS, "llama-kserve-keda"): {"metadata": {"name": "llama-kserve-keda"}},
    }
    observed = observed_with(asleep(metadata={"annotations": {}}, scaling=scaling), live=live)
    assert children(plan(observed))["Deployment", "llama-kserve"]["spec"].get("replicas") == replicas
    assert "replicas" not in children(plan(observed_with(observed, live={})))["Deployment", "llama-kserve"]["spec"]


@pytest.mark.parametrize(
    ("metadata", "away", "message", "reason"),
    [
        (ASKING, "keda-operator", "", "KEDAUnavailable"),
        (ASKING, "", "Prometheus does not answer", "ScaledObjectNotReady"),
        (ASKING, "keda-add-ons-http-interceptor-proxy", "", None),
        ({"annotations": {}}, "keda-operator", "", None),
    ],
)
def test_whom_nobody_wakes_says_who_is_away(metadata: Object, away: str, message: str, reason: str | None) -> None:
    kinds = {"Ready": "False" if message else "True", "Active": "False", "Fallback": "False", "Paused": "False"}
    said = [{"type": kind, "status": status, "message": message} for kind, status in kinds.items()]
    scaled = {"metadata": {"name": "llama-kserve-keda"}, "status": {"conditions": said}}
    live = {(SCALED_OBJECTS, "llama-kserve-keda"): scaled}
    observed = observed_with(asleep(metadata=metadata), live=live, away=frozenset({away}))
    edit = StatusEdit({}, "2026-01-01T00:00:00Z")
    report(edit, plan(observed), Applied(observed, Outcome()))
    condition = find(edit.conditions.result(), "ScalingReady") or {}
    assert (condition["status"], condition.get("reason")) == ("False" if reason else "True", reason)
    assert message in condition.get("message", "")


@pytest.mark.parametrize(("text", "seconds"), [("0s", 0), ("1m30s", 90), ("2h", 7200), ("500ms", 0.5)])
def test_durations_of_the_gateway_api(text: str, seconds: float) -> None:
    assert durations.seconds(text) == seconds
