"""Defaults of HorizontalPodAutoscalers."""

from __future__ import annotations

from isvc.kube.objects import Object

_UP_POLICIES = [
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
]
_DOWN_POLICIES = [{"type": "Percent", "value": 100, "periodSeconds": 15}]


def autoscaler(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if obj.get("apiVersion") == "autoscaling/v1":
        spec.setdefault("targetCPUUtilizationPercentage", 80)
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if "behavior" in spec:
        up = spec["behavior"].setdefault("scaleUp", {})
        up.setdefault("stabilizationWindowSeconds", 0)
        up.setdefault("selectPolicy", "Max")
        up.setdefault("policies", [dict(each) for each in _UP_POLICIES])
        down = spec["behavior"].setdefault("scaleDown", {})
        down.setdefault("selectPolicy", "Max")
        down.setdefault("policies", [dict(each) for each in _DOWN_POLICIES])
