"""Validates HorizontalPodAutoscalers and PodDisruptionBudgets."""

from __future__ import annotations

from isvc.apiserver.builtin.validation.checks import Errors, count_or_percent, one_of, selector
from isvc.apiserver.field_errors import Struct, forbidden, invalid, not_supported, required
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity

_KINDS = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}


def autoscaler(obj: Object) -> Errors:
    spec = obj["spec"]
    if obj.get("apiVersion") == "autoscaling/v1":
        spec = {**spec, "metrics": [{"type": "Pods", "pods": {}}]}
    least, most = spec.get("minReplicas", 1), spec.get("maxReplicas", 0)
    if least < 1:
        yield invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most < 1:
        yield invalid("spec.maxReplicas", most, "must be greater than 0")
    if most < least:
        yield invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    yield from _target(spec["scaleTargetRef"])
    if obj.get("apiVersion") != "autoscaling/v1":
        for index, metric in enumerate(spec.get("metrics") or ()):
            yield from _metric(f"spec.metrics[{index}]", metric)
    if least == 0 and not any(each.get("type") in ("Object", "External") for each in spec.get("metrics") or ()):
        words = "must specify at least one Object or External metric to support scaling to zero replicas"
        yield forbidden("spec.metrics", words)
    for direction in ("scaleUp", "scaleDown"):
        rules = (spec.get("behavior") or {}).get(direction)
        if rules is not None:
            yield from _rules(f"spec.behavior.{direction}", rules)


def _target(target: Object) -> Errors:
    for key in ("kind", "name"):
        if not target.get(key):
            yield required(f"spec.scaleTargetRef.{key}")
    version = target.get("apiVersion") or ""
    if "/" not in version and not (version == "v1" and target.get("kind") == "ReplicationController"):
        yield invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")


def _metric(path: str, metric: Object) -> Errors:
    kind = metric.get("type") or ""
    if kind not in _KINDS:
        yield not_supported(f"{path}.type", kind, sorted(_KINDS))
        return
    key = _KINDS[kind]
    source = metric.get(key)
    if source is None:
        yield required(f"{path}.{key}", "must populate information for the given metric source")
        return
    target = source.get("target") or {}
    yield from _metric_target(f"{path}.{key}.target", target)
    if kind in ("Resource", "ContainerResource"):
        raw, share = "averageValue" in target, "averageUtilization" in target
        if not raw and not share:
            words = "must set either a target raw value or a target utilization"
            yield required(f"{path}.{key}.target.averageUtilization", words)
        if raw and share:
            words = "may not set both a target raw value and a target utilization"
            yield forbidden(f"{path}.{key}.target.averageValue", words)


def _metric_target(path: str, target: Object) -> Errors:
    kind = target.get("type") or ""
    if not kind:
        yield required(f"{path}.type", "must specify a metric target type")
    if kind not in ("Utilization", "Value", "AverageValue"):
        yield invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue")
    for each in ("value", "averageValue"):
        if each in target and Quantity.parse(target[each]).nanos <= 0:
            yield invalid(f"{path}.{each}", target[each], "must be positive")
    if target.get("averageUtilization", 1) < 1:
        yield invalid(f"{path}.averageUtilization", target["averageUtilization"], "must be greater than 0")


def _rules(path: str, rules: Object) -> Errors:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero")
    if window is not None and window > 3600:
        yield invalid(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600")
    yield from one_of(f"{path}.selectPolicy", rules.get("selectPolicy"), ("Disabled", "Max", "Min"))
    for index, policy in enumerate(rules.get("policies") or ()):
        inner = f"{path}.policies[{index}]"
        yield from one_of(f"{inner}.type", policy.get("type"), ("Percent", "Pods"))
        for key in ("value", "periodSeconds"):
            if policy.get(key, 0) <= 0:
                yield invalid(f"{inner}.{key}", policy.get(key, 0), "must be greater than zero")


def disruption_budget(obj: Object) -> Errors:
    spec = obj["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        shown = Struct(
            MinAvailable=spec["minAvailable"],
            Selector=spec.get("selector"),
            MaxUnavailable=spec["maxUnavailable"],
            UnhealthyPodEvictionPolicy=spec.get("unhealthyPodEvictionPolicy"),
        )
        yield invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for key in ("minAvailable", "maxUnavailable"):
        if key in spec:
            yield from count_or_percent(f"spec.{key}", spec[key])
    yield from selector("spec.selector", spec.get("selector"))
