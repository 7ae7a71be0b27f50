"""Conditions of workloads: what live objects say, what was not reached, and what a stopped service says."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.controllers.llmisvc.workload.workloads import POD, observed_with, workload

from isvc.controllers.llmisvc.area import Applied
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.status.edit import StatusEdit
from isvc.controllers.llmisvc.workload import plan, report
from isvc.engine.outcome import Outcome, Refusal, Taken
from isvc.engine.plan import ChildKey
from isvc.kube.objects import Object
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS
from isvc.serving.config import Config
from isvc.serving.thirdparty import LEADER_WORKER_SETS, SCALED_OBJECTS

NOW = "2026-01-01T00:00:00Z"
BEFORE = [{"type": "MainWorkloadReady", "status": "True"}, {"type": "PrefillWorkloadReady", "status": "True"}]


def conditions(observed: Observed, outcome: Outcome | None = None, before: Any = ()) -> dict[str, tuple[str, str]]:
    observed = observed_with(observed, served=frozenset({LEADER_WORKER_SETS, SCALED_OBJECTS}))
    area = plan(observed)
    edit = StatusEdit({"conditions": list(before)}, NOW)
    if area.stop:
        edit.mark(area.stop.condition, "False", area.stop.reason, area.stop.message)
    report(edit, area, Applied(observed, outcome or Outcome()))
    found = edit.result().get("conditions") or []
    return {each["type"]: (each["status"], each.get("reason", "")) for each in found if each["type"] != "Ready"}


def with_status(resource: Any, name: str, *given: Object) -> dict[Any, Object]:
    return {(resource, name): {"metadata": {"name": name}, "status": {"conditions": list(given)}}}


def said(kind: str, status: str, reason: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ("False", "Progressing")),
        ([said("Progressing", "False", "ProgressDeadlineExceeded")], ("False", "Progressing")),
        ([said("Available", "False", "MinimumReplicasUnavailable")], ("False", "MinimumReplicasUnavailable")),
        ([said("Progressing", "False", "Slow"), said("Available", "True")], ("True", "")),
    ],
)
def test_a_deployment_is_ready_when_it_is_available(given: list[Object], expected: tuple[str, str]) -> None:
    observed = workload("pvc://c/m", more={"live": with_status(DEPLOYMENTS, "llama-kserve", *given)})
    assert conditions(observed) == {"MainWorkloadReady": expected}


def test_a_group_speaks_for_servers_that_span_nodes() -> None:
    there = with_status(LEADER_WORKER_SETS, "llama-kserve-mn", said("Available", "False", "GroupsProgressing"))
    observed = workload("pvc://c/m", worker=POD, more={"live": there})
    assert conditions(observed, before=BEFORE) == {"WorkerWorkloadReady": ("False", "GroupsProgressing")}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ("False", "HPAProgressing")),
        ([said("AbleToScale", "True"), said("ScalingActive", "False", "NoMetric")], ("False", "NoMetric")),
        ([said("AbleToScale", "True")], ("True", "")),
        ([said("ScalingLimited", "True")], ("False", "HPAProgressing")),
    ],
)
def test_an_autoscaler_is_ready_when_it_can_read_its_metric(given: list[Object], expected: tuple[str, str]) -> None:
    there = with_status(HORIZONTAL_POD_AUTOSCALERS, "llama-kserve-hpa", *given)
    observed = workload("pvc://c/m", scaling={"maxReplicas": 2, "wva": {"hpa": {}}}, more={"live": there})
    assert conditions(observed)["ScalingReady"] == expected


@pytest.mark.parametrize(
    ("ready", "others", "expected"),
    [
        ("True", ("Active", "Fallback", "Paused"), ("True", "")),
        ("True", ("Active",), ("False", "ScaledObjectProgressing")),
        ("Unknown", ("Active", "Fallback", "Paused"), ("False", "ScaledObjectProgressing")),
        ("False", ("Active", "Fallback", "Paused"), ("False", "why")),
    ],
)
def test_a_scaled_object_is_ready_when_keda_says_so(
    ready: str, others: tuple[str, ...], expected: tuple[str, str]
) -> None:
    given = [said("Ready", ready, "why" if ready == "False" else ""), *(said(kind, "Unknown") for kind in others)]
    there = with_status(SCALED_OBJECTS, "llama-kserve-keda", *given)
    scaling = {"maxReplicas": 2, "keda": {"triggers": [{"type": "cpu"}]}}
    assert conditions(workload("pvc://c/m", scaling=scaling, more={"live": there}))["ScalingReady"] == expected


def test_what_is_not_there_has_no_condition() -> None:
    before = [*BEFORE, said("WorkerWorkloadReady", "False"), said("ScalingReady", "False")]
    assert conditions(workload("pvc://c/m"), before=before).keys() == {"MainWorkloadReady"}


def test_a_stopped_service_says_so_of_every_workload() -> None:
    stopped = workload("pvc://c/m", metadata={"annotations": {"serving.kserve.io/stop": "true"}})
    found = conditions(stopped, before=[said("ScalingReady", "True")])
    assert set(found.values()) == {("False", "Stopped")}
    assert found.keys() == {
        "MainWorkloadReady",
        "WorkerWorkloadReady",
        "PrefillWorkloadReady",
        "PrefillWorkerWorkloadReady",
    }


def test_what_planning_did_not_reach_stays_as_it_was() -> None:
    missing = workload(template={**POD, "serviceAccountName": "ghost"}, accounts={"ghost": None})
    found = conditions(missing, before=BEFORE)
    assert found["WorkerWorkloadReady"] == ("False", "ReconcileMultiNodeWorkloadError")
    assert found["MainWorkloadReady"] == found["PrefillWorkloadReady"] == ("True", "")


def test_what_applying_did_not_reach_stays_as_it_was() -> None:
    refused = Refusal("Deployment llama-kserve", ChildKey(DEPLOYMENTS, "llama-kserve"), Taken("not ours"))
    found = conditions(workload("pvc://c/m"), Outcome(refusal=refused), BEFORE)
    assert found == {"MainWorkloadReady": ("True", ""), "PrefillWorkloadReady": ("True", "")}


def test_why_there_is_no_autoscaler_is_said_also_of_servers_that_span_nodes() -> None:
    observed = workload("pvc://c/m", worker=POD, scaling={"maxReplicas": 2, "wva": {"keda": {}}})
    assert conditions(observed)["MainWorkloadReady"] == ("False", "ReconcileScalingError")


def test_image_volumes_that_kubernetes_cannot_mount_are_warned_of() -> None:
    storage = msgspec.structs.replace(Config().storage_initializer, oci_model_mode="native")
    config = msgspec.structs.replace(Config(), storage_initializer=storage)
    for minor, reason in (("30", "ImageVolumeUnsupported"), ("34", "ImageVolumeAlpha")):
        old = observed_with(workload("pvc://c/m"), config=config, server_version=("1", minor))
        assert conditions(old)["OciImageVolumeCompatible"] == ("False", reason)
    today = observed_with(workload("pvc://c/m"), config=config, server_version=("1", "35"))
    assert "OciImageVolumeCompatible" not in conditions(today, before=[said("OciImageVolumeCompatible", "False")])
