"""Refusals in Kubernetes' own words and order, for what its checks have in store that is easily missed."""

from typing import Any

from tests.unit.apiserver.strategies import strategy_of

from isvc.apiserver.builtin.catalog import KINDS
from isvc.apiserver.builtin.validation.workloads import job_update
from isvc.kube.objects import Object
from isvc.kube.resource import DEPLOYMENTS


def problems(group, kind, obj):
    record = next(each for each in KINDS if (each.resource.group, each.resource.kind) == (group, kind))
    assert record.check is not None
    return [(error.field, error.message.rpartition(": ")[2]) for error in record.check(obj)]


def pod(container=None, **spec):
    policies = {"terminationMessagePolicy": "File", "imagePullPolicy": "Always"}
    server = {"name": "c", "image": "i", **policies, **(container or {})}
    whole = {"containers": [server], "restartPolicy": "Always", "dnsPolicy": "Default", **spec}
    return {"metadata": {"name": "p"}, "spec": whole}


def autoscaler(target):
    metric = {"type": "Resource", "resource": {"name": "memory", "target": target}}
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    spec = {"scaleTargetRef": reference, "maxReplicas": 1, "metrics": [metric]}
    return {"apiVersion": "autoscaling/v2", "metadata": {"name": "h"}, "spec": spec}


def test_toleration_seconds_are_for_evictions():
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 3}
    words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
    assert problems("", "Pod", pod(tolerations=[toleration])) == [("spec.tolerations[0].effect", words)]
    assert problems("", "Pod", pod(tolerations=[{**toleration, "effect": "NoExecute"}])) == []


def test_probes_are_looked_at_after_ports():
    broken = {"ports": [{"containerPort": 0, "protocol": "TCP"}], "readinessProbe": {"tcpSocket": {"port": 0}}}
    paths = [path.removeprefix("spec.containers[0].") for path, _ in problems("", "Pod", pod(broken))]
    assert paths == ["ports[0].containerPort", "readinessProbe.tcpSocket.port"]


def test_a_metric_needs_a_kind_of_target_and_one_of_two_values():
    path = "spec.metrics[0].resource.target"
    nothing = problems("autoscaling", "HorizontalPodAutoscaler", autoscaler({}))
    assert [where for where, _ in nothing] == [f"{path}.type", f"{path}.type", f"{path}.averageUtilization"]
    both = autoscaler({"type": "Utilization", "averageUtilization": 5, "averageValue": "1Gi"})
    words = "may not set both a target raw value and a target utilization"
    assert problems("autoscaling", "HorizontalPodAutoscaler", both) == [(f"{path}.averageValue", words)]


def test_pods_that_are_kept_running_have_no_deadline():
    labels = {"app": "a"}
    template = {**pod(activeDeadlineSeconds=9), "metadata": {"labels": labels}}
    spec = {"selector": {"matchLabels": labels}, "template": template, "strategy": {"type": "Recreate"}}
    words = "activeDeadlineSeconds in ReplicaSet is not Supported"
    found = problems("apps", "Deployment", {"metadata": {"name": "d"}, "spec": spec})
    assert found == [("spec.template.spec.activeDeadlineSeconds", words)]


def test_a_deployment_has_no_more_available_replicas_than_it_has():
    new = {"metadata": {"name": "d"}, "status": {"availableReplicas": 1}}
    found = [(error.field, error.message) for error in strategy_of(DEPLOYMENTS).validate_update(new, {}, "status")]
    assert found == [
        ("status.availableReplicas", "Invalid value: 1: cannot be greater than status.replicas"),
        ("status.availableReplicas", "Invalid value: 1: cannot be greater than readyReplicas"),
    ]
    whole = {"replicas": 2, "readyReplicas": 2, "availableReplicas": 1}
    assert not strategy_of(DEPLOYMENTS).validate_update({**new, "status": whole}, {}, "status")


def test_a_quota_is_not_negative():
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1", "cpu": "-1"}}}
    assert problems("", "ResourceQuota", quota) == [("spec.hard[cpu]", "must be greater than or equal to 0")]


def refused(new: Object, old: Object) -> list[str]:
    return [error.field for error in job_update(new, old)]


def job(*, suspend: bool = False, status: Object | None = None, metadata: Object | None = None, **spec: Any) -> Object:
    template = {"metadata": metadata or {}, "spec": {"containers": [], **spec}}
    return {"spec": {"suspend": suspend, "template": template}, "status": status or {}}


def test_where_pods_of_a_job_run_may_change_while_it_waits_for_its_start():
    waiting, started = job(suspend=True), {"startTime": "2026-11-16T09:00:00Z"}
    elsewhere = job(nodeSelector={"zone": "a"}, metadata={"labels": {"a": "b"}}, affinity={"nodeAffinity": {"x": 1}})
    assert refused(elsewhere, waiting) == []
    assert refused(waiting, {**elsewhere, "spec": {**elsewhere["spec"], "suspend": True}}) == []
    assert refused(elsewhere, job()) == ["spec.template"]
    assert refused(elsewhere, job(suspend=True, status=started)) == ["spec.template"]
    assert refused(job(suspend=True, hostNetwork=True), waiting) == ["spec.template"]
    assert refused(job(affinity={"podAffinity": {"x": 1}}), waiting) == ["spec.template"]


def test_an_indexed_job_grows_and_shrinks_as_a_whole():
    def sized(completions: int, parallelism: int, mode: str = "Indexed") -> Object:
        return {"spec": {"completionMode": mode, "completions": completions, "parallelism": parallelism}}

    assert refused(sized(4, 4), sized(2, 2)) == []
    assert refused(sized(2, 4), sized(2, 2)) == []
    assert refused(sized(4, 2), sized(2, 2)) == ["spec.completions"]
    assert refused(sized(4, 4, "NonIndexed"), sized(2, 2, "NonIndexed")) == ["spec.completions"]


def test_what_is_wrong_with_a_volume_is_wrong_with_its_mounts():
    mounted = pod({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}, volumes=[{"name": "v", "image": {}}])
    paths = [path for path, _ in problems("", "Pod", mounted)]
    assert paths == ["spec.volumes[0].image.reference", "spec.containers[0].volumeMounts[0].name"]
