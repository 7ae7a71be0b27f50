"""What is odd about services that are ready, and in which order causes are named. Evidence is written by hand."""

from __future__ import annotations

import click
import pytest

from isvc.cli.explain import headline
from isvc.cli.get import _row
from isvc.insight.diagnosis.diagnose import diagnose
from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.diagnosis.sentence import state
from isvc.kube.objects import Object
from isvc.serving.workload.scalers import INTERCEPTOR, OPERATOR, scaling_readiness

READY = {"type": "Ready", "status": "True"}
NOT_READY = {"type": "Ready", "status": "False", "reason": "Predictor ingress not created", "message": "waits"}


def service(*conditions: Object, **metadata: object) -> Object:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "iris", "namespace": "team", "uid": "service", **metadata},
        "status": {"conditions": list(conditions)},
    }


def child(kind: str, name: str, owner: str, **more: object) -> Object:
    reference = {"uid": owner, "controller": True}
    metadata = {"name": name, "uid": name, "ownerReferences": [reference], **dict(more.pop("metadata", {}))}  # type: ignore[call-overload]
    return {"kind": kind, "metadata": metadata, **more}


def deployment(available: int, wanted: int) -> Object:
    return child("Deployment", "d", "service", spec={"replicas": wanted}, status={"availableReplicas": available})


def replica_set(revision: int, ready: int) -> Object:
    metadata = {"annotations": {"deployment.kubernetes.io/revision": str(revision)}}
    return child("ReplicaSet", f"rs{revision}", "d", metadata=metadata, status={"readyReplicas": ready})


def pod(name: str, **container: object) -> Object:
    status = {"phase": "Running", "containerStatuses": [{"name": "kserve-container", "ready": False, **container}]}
    return child("Pod", name, "rs2", spec={}, status=status)


def autoscaler(kind: str, status: str, reason: str) -> Object:
    condition = {"type": kind, "status": status, "reason": reason, "message": "says so"}
    return child("HorizontalPodAutoscaler", "h", "service", spec={"maxReplicas": 3}, status={"conditions": [condition]})


def causes(evidence: Evidence) -> list[str]:
    return [finding.cause for finding in diagnose(evidence)]


def test_all_is_well():
    evidence = Evidence(service(READY), owned=[deployment(2, 2), replica_set(1, 2)])
    assert diagnose(evidence) == []


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        (Evidence(service(READY), owned=[deployment(1, 3)]), ["FewerReplicas"]),
        (
            Evidence(service(READY), owned=[deployment(1, 1), replica_set(1, 1), replica_set(2, 0)]),
            ["OldRevisionServes"],
        ),
        (
            Evidence(service(READY), owned=[autoscaler("ScalingLimited", "True", "TooManyReplicas")]),
            ["AutoscalerAtLimit"],
        ),
        (Evidence(service(READY), owned=[autoscaler("ScalingActive", "False", "FailedGetMetric")]), ["NoMetrics"]),
        (Evidence(service(READY), owned=[autoscaler("ScalingActive", "False", "ScalingDisabled")]), []),
        (Evidence(service(READY), config="inferenceservice-config: deploy is not JSON"), ["BadConfiguration"]),
    ],
)
def test_ready_but_odd(evidence: Evidence, expected: list[str]):
    assert causes(evidence) == expected
    assert all(finding.level is Level.WARNS for finding in diagnose(evidence))


UNAVAILABLE = [
    (frozenset({OPERATOR}), "True", "repair the Deployment keda-operator"),
    (frozenset({INTERCEPTOR}), "True", "repair the Deployment of the add-on's interceptor"),
    (frozenset[str](), "False", "see that Prometheus, or KEDA's HTTP add-on, answers"),
]


@pytest.mark.parametrize("kind", ["InferenceService", "LLMInferenceService"])
@pytest.mark.parametrize("ready", [READY, NOT_READY])
@pytest.mark.parametrize(("away", "scales", "remedy"), UNAVAILABLE)
def test_who_is_away_that_scales_a_service_is_named(
    kind: str, ready: Object, away: frozenset[str], scales: str, remedy: str
):
    scaled = {"metadata": {"name": "s"}, "status": {"conditions": [{"type": "Ready", "status": scales}]}}
    said = {"type": "ScalingReady", **scaling_readiness(scaled, away, "2026-01-01T00:00:00Z")._asdict()}
    [finding] = diagnose(Evidence({**service(ready, said), "kind": kind}))
    assert finding.cause == said["reason"]
    assert remedy in finding.remedy


def test_what_keeps_a_service_from_waking_comes_first():
    waking = {**READY, "reason": "Waking", "message": "waking up"}
    crashed = {"state": {"terminated": {"reason": "Error", "exitCode": 1, "message": "no such file"}}}
    found = diagnose(Evidence(service(waking), owned=[deployment(0, 1), replica_set(2, 0)], pods=[pod("p", **crashed)]))
    assert [finding.cause for finding in found] == ["ContainerCrashes", "FewerReplicas"]
    assert state(service(waking), found).startswith("is waking up: container kserve-container of pod p ends with")
    assert state(service(waking), ()) == "is waking up"


def test_an_old_revision_that_serves_is_explained_by_the_new_one():
    crashed = {"state": {"terminated": {"reason": "Error", "exitCode": 1, "message": "no such file"}}}
    owned = [deployment(1, 1), replica_set(1, 1), replica_set(2, 0)]
    found = diagnose(Evidence(service(READY), owned=owned, pods=[pod("new", **crashed)]))
    assert [finding.cause for finding in found] == ["OldRevisionServes", "ContainerCrashes"]
    assert found[1].message == "container kserve-container of pod new ends with exit code 1: no such file"


def test_the_chain_leads_from_the_condition_to_the_container():
    owned = [deployment(0, 1), child("ReplicaSet", "rs2", "d", spec={"replicas": 1})]
    waiting = {"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    broken = pod("p", **waiting)
    finding = diagnose(Evidence(service(NOT_READY), owned=[*owned, broken], pods=[broken]))[0]
    assert finding.chain == (
        "InferenceService iris: Ready is False (Predictor ingress not created)",
        "Deployment d: 0 of 1 replicas available",
        "ReplicaSet rs2: 0 of 1 ready",
        "Pod p: Running",
        "container kserve-container: waiting (ErrImagePull)",
    )


def test_what_stops_everything_hides_what_follows_from_it():
    stopped = service(NOT_READY, annotations={"serving.kserve.io/stop": "true"})
    problem = Finding("NoSupportingRuntime", "no runtime")
    assert causes(Evidence(stopped, problem=problem, taken=["Service iris exists"])) == ["Stopped"]
    assert causes(Evidence(service(NOT_READY), problem=problem, taken=["Service iris exists"])) == [problem.cause]


@pytest.mark.parametrize("conditions", ["Ready", 7, [1, "x", {}], {"type": "Ready"}, [{"type": 3}]])
def test_a_status_of_another_shape_is_said_to_be_one(conditions: object):
    broken = {**service(), "status": {"conditions": conditions, "observedGeneration": "many"}}
    finding = diagnose(Evidence(broken))[0]
    assert finding.message.startswith("status.conditions of InferenceService iris is no list of conditions")
    assert state(broken, [finding]).startswith("is starting: status.conditions of")
    assert "iris is not ready yet: status.conditions of" in click.unstyle(headline(broken, [finding]))
    assert click.unstyle(_row(broken, namespaces=False, wide=True)[2]) == "Unknown"


def test_several_pods_that_fail_alike_are_one_finding():
    waiting = {"state": {"waiting": {"reason": "ErrImagePull"}}}
    assert causes(Evidence(service(NOT_READY), pods=[pod("a", **waiting), pod("b", **waiting)])) == [
        "ImageCannotBePulled"
    ]


@pytest.mark.parametrize(
    "state",
    [
        {"waiting": {"reason": "CreateContainerError", "message": "no space left on device: /a"}},
        {"terminated": {"reason": "Error", "exitCode": 1, "message": "OSError: [Errno 28] No space left on device"}},
    ],
)
def test_a_full_disk_is_named_as_such(state: Object):
    evidence = Evidence(service(NOT_READY), pods=[pod("p", state=state)])
    assert causes(evidence)[0] == "DiskFull"


def test_a_container_without_memory_is_no_crash_as_well():
    ended = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    killed = pod("p", state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState=ended)
    (finding,) = diagnose(Evidence(service(NOT_READY), pods=[killed]))
    assert finding.remedy.startswith("raise resources.limits.memory")


def test_a_missing_secret_is_to_be_created_by_its_name():
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "db" not found'}}
    unmade = pod("p", state=waiting)
    event = {
        "type": "Warning",
        "reason": "FailedMount",
        "message": 'secret "db" not found',
        "involvedObject": {"uid": "p"},
    }
    (finding,) = diagnose(Evidence(service(NOT_READY), pods=[unmade], events=[event]))
    assert finding.remedy == "create the Secret db in namespace team, or take it out of the service"


def test_the_port_that_nothing_listens_on_is_named():
    deaf = pod("p", state={"running": {"startedAt": "now"}})
    deaf["spec"] = {"containers": [{"name": "kserve-container", "readinessProbe": {"tcpSocket": {"port": 9999}}}]}
    said = "Readiness probe failed: nothing listens on port 9999: connection refused"
    event = {"type": "Warning", "reason": "Unhealthy", "message": said, "involvedObject": {"uid": "p"}}
    (finding,) = diagnose(Evidence(service(NOT_READY), pods=[deaf], events=[event]))
    assert finding.remedy == "have the server listen on port 9999, or correct the container's port and probe"


def test_a_container_that_starts_is_waited_for():
    evidence = Evidence(service(NOT_READY), pods=[pod("p", state={"running": {"startedAt": "now"}})])
    assert [(each.cause, each.level) for each in diagnose(evidence)] == [("Starting", Level.WAITS)]


def test_without_any_other_cause_the_status_speaks():
    finding = diagnose(Evidence(service(NOT_READY)))[0]
    assert finding.message == "Ready is False: waits"


def test_nobody_has_looked_yet():
    assert causes(Evidence(service())) == ["NotReconciled"]


def test_what_a_service_was_before_its_last_edit_does_not_count():
    edited = service({"type": "Ready", "status": "True"}, generation=2)
    edited["status"]["observedGeneration"] = 1
    assert causes(Evidence(edited)) == ["NotReconciled"]


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ('admission webhook "x.example.com" denied the request: no', "DeniedByWebhook"),
        ('admission webhook "a.kserve-webhook-server.pod-mutator" denied the request: no secret', "ChildRefused"),
        ('Internal error occurred: failed calling webhook "y": refused', "WebhookUnreachable"),
        ('pods "p" is forbidden: exceeded quota: tight, requested: cpu=1', "QuotaExceeded"),
        ("spec.replicas: Invalid value: -1", "ChildRefused"),
    ],
)
def test_refusals_are_told_apart(message: str, cause: str):
    evidence = Evidence(service(NOT_READY), refused={"Deployment d": message})
    finding = diagnose(evidence)[0]
    assert finding.cause == cause
    assert finding.message.startswith("Deployment d cannot be created")
    assert finding.remedy


def test_who_sets_a_limit_alone_is_told_of_the_request():
    """It comes from the runtime, so that nothing of it is in what the user wrote."""
    field = "spec.template.spec.containers[0].resources.requests"
    refused = f'{field}: Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'
    evidence = Evidence(service(NOT_READY), refused={"Deployment d": refused})
    remedy = "set resources.requests.memory of the service, too: what it leaves out is that of its runtime"
    assert diagnose(evidence)[0].remedy == f"{remedy}; or raise the limit of 1Gi"


def test_an_autoscaler_without_metrics_is_no_cause_while_a_model_is_downloaded():
    running = {"name": "storage-initializer", "state": {"running": {"startedAt": "now"}}}
    loading = {**pod("a"), "spec": {"initContainers": [{"name": "storage-initializer", "args": ["gs://models/iris"]}]}}
    loading["status"] = {"phase": "Pending", "initContainerStatuses": [running]}
    scaler = autoscaler("ScalingActive", "False", "FailedGetResourceMetric")
    (found,) = diagnose(Evidence(service(NOT_READY), owned=[scaler, loading], pods=[loading]))
    assert (found.cause, found.level) == ("Starting", Level.WAITS)
    assert "downloads gs://models/iris" in found.message


@pytest.mark.parametrize(("exit_code", "cause"), [(1, "ContainerCrashes"), (137, "Starting")])
def test_a_container_that_runs_again_after_a_crash_has_not_mended_itself(exit_code: int, cause: str):
    ended = {"terminated": {"reason": "Error", "exitCode": exit_code}}
    again = pod("a", state={"running": {"startedAt": "now"}}, lastState=ended, restartCount=2)
    assert causes(Evidence(service(NOT_READY), pods=[again])) == [cause]
