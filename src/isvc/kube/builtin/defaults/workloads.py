"""Defaults of Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers."""

from __future__ import annotations

from isvc.kube.builtin.defaults import pods, storage
from isvc.kube.objects import Object


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
