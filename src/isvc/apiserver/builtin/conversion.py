"""Built-in kinds that are served in two versions but kept in one: autoscalers and events."""

from __future__ import annotations

import orjson

from isvc.kube.objects import Object, annotations_of

_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
#: What core/v1 and events.k8s.io/v1 call the same field.
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_CORE_FIELDS = {new: old for old, new in _EVENT_FIELDS.items()}


def event(obj: Object, api_version: str) -> Object:
    if api_version == "v1":
        return _rename_fields(obj, api_version, _CORE_FIELDS, {"reportingInstance": "", "reportingComponent": ""})
    return _rename_fields(obj, api_version, _EVENT_FIELDS, {})


def autoscaler(obj: Object, api_version: str) -> Object:
    """Converts autoscalers; what the other version cannot say is kept in annotations."""
    return _to_v1(obj) if api_version == "autoscaling/v1" else _to_v2(obj)


def _rename_fields(obj: Object, api_version: str, names: dict[str, str], always: Object) -> Object:
    renamed = {names.get(key, key): value for key, value in obj.items()}
    if api_version != "v1":
        renamed = {k: v for k, v in renamed.items() if v != "" or not k.startswith("reporting")}
    return {**always, **renamed, "apiVersion": api_version}


def _to_v1(obj: Object) -> Object:
    spec = {key: value for key, value in obj["spec"].items() if key not in ("metrics", "behavior")}
    annotations = dict(annotations_of(obj))
    rest = []
    for metric in obj["spec"].get("metrics") or ():
        target = (metric.get("resource") or {}).get("target") or {}
        is_cpu = (metric.get("resource") or {}).get("name") == "cpu" and "averageUtilization" in target
        if is_cpu and "targetCPUUtilizationPercentage" not in spec:
            spec["targetCPUUtilizationPercentage"] = target["averageUtilization"]
        else:
            rest.append(metric)
    if rest:
        annotations[_METRICS] = orjson.dumps(rest).decode()
    if "behavior" in obj["spec"]:
        annotations[_BEHAVIOR] = orjson.dumps(obj["spec"]["behavior"]).decode()
    status = obj.get("status") or {}
    shown = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
    metadata = {**obj["metadata"], **({"annotations": annotations} if annotations else {})}
    kept = {"currentReplicas": 0, "desiredReplicas": 0, **{k: status[k] for k in shown if k in status}}
    return {**obj, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": kept}


def _to_v2(obj: Object) -> Object:
    spec = dict(obj["spec"])
    annotations = dict(annotations_of(obj))
    metrics = orjson.loads(annotations.pop(_METRICS, "[]"))
    behavior = annotations.pop(_BEHAVIOR, None)
    percentage = spec.pop("targetCPUUtilizationPercentage", None)
    if percentage is not None:
        target = {"type": "Utilization", "averageUtilization": percentage}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}, *metrics]
    spec["metrics"] = metrics
    if behavior:
        spec["behavior"] = orjson.loads(behavior)
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if annotations:
        metadata["annotations"] = annotations
    status = {"currentMetrics": None, **(obj.get("status") or {})}
    return {**obj, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec, "status": status}
