"""Defaults of what makes pods (Deployments, StatefulSets, DaemonSets, Jobs and their like), and of autoscalers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from isvc.kube.builtin.defaults import pods, storage
from isvc.kube.objects import Object, deep_copy, dig

_DOUBLE: Final = {"type": "Percent", "value": 100, "periodSeconds": 15}
SCALING_RULES: Final[Mapping[str, Object]] = {
    "scaleUp": {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, _DOUBLE],
    },
    "scaleDown": {"selectPolicy": "Max", "policies": [_DOUBLE]},
}
"""How fast a HorizontalPodAutoscaler may follow where its `behavior` does not say. Do not modify."""


def deployment(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    pods.template(spec["template"])
    strategy = spec["strategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def replica_set(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    pods.template(spec["template"])


def stateful_set(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    pods.template(spec["template"])
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        storage.claim(claim)


def daemon_set(obj: Object) -> None:
    spec = obj["spec"]
    obj["metadata"].setdefault("annotations", {}).setdefault("deprecated.daemonset.template.generation", "0")
    pods.template(spec["template"])
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def replication_controller(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    if "template" in spec:
        pods.template(spec["template"])
        labels = spec["template"]["metadata"].get("labels")
        if labels:
            spec.setdefault("selector", dict(labels))
            obj["metadata"].setdefault("labels", dict(labels))


def job(obj: Object) -> None:
    labels = obj["spec"]["template"]["metadata"].get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)
    spec = obj["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    _job_pods(spec)


def cron_job(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    _job_pods(spec["jobTemplate"]["spec"])


def _job_pods(spec: Object) -> None:
    pods.template(spec["template"])
    for rule in dig(spec, "podFailurePolicy", "rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def autoscaler(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if obj.get("apiVersion") == "autoscaling/v1":
        spec.setdefault("targetCPUUtilizationPercentage", 80)
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    for direction, rules in SCALING_RULES.items() if "behavior" in spec else ():
        spec["behavior"][direction] = deep_copy(dict(rules)) | spec["behavior"].get(direction, {})
