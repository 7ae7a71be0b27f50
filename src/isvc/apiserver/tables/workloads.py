"""Columns of workloads, Jobs and autoscalers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isvc.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    at,
    count,
    duration,
    join_values,
    selector,
    since,
    wide,
)
from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Object, dig, is_being_deleted
from isvc.kube.owners import controller_of
from isvc.kube.timestamps import seconds_between


def _of(first: tuple[str, ...], second: tuple[str, ...]) -> Any:
    return lambda obj: f"{dig(obj, *first) or 0}/{dig(obj, *second) or 0}"


def _containers(obj: Object) -> list[Object]:
    spec = dig(obj, "spec", "jobTemplate", "spec") or obj.get("spec") or obj
    return dig(spec, "template", "spec", "containers") or []


def _labels(obj: Object) -> str:
    labels = dig(obj, "template", "metadata", "labels") or {}
    return join_values(f"{key}={labels[key]}" for key in sorted(labels))


CONTAINERS = wide("Containers", lambda obj: ",".join(each["name"] for each in _containers(obj)))
IMAGES = wide("Images", lambda obj: ",".join(each.get("image", "") for each in _containers(obj)))
SELECTOR = wide("Selector", lambda obj: selector(dig(obj, "spec", "selector")))


def _job_status(job: Object) -> str:
    for kind in ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if is_condition_true(job, kind):
            return kind
    return "Terminating" if is_being_deleted(job) else "Running"


def _job_duration(job: Object) -> str:
    start, end = dig(job, "status", "startTime"), dig(job, "status", "completionTime")
    if not start:
        return ""
    if not end:
        return since(start)
    return duration(seconds_between(start, end))


def _hpa_target(metric: Object, current: Object | None) -> str:
    source = metric.get(metric["type"][:1].lower() + metric["type"][1:]) or {}
    wanted = source.get("target") or {}
    now = (current or {}).get("current") or {}
    if wanted.get("averageUtilization") is not None:
        found = now.get("averageUtilization")
        have = UNKNOWN if found is None else f"{found}%"
        return f"{source.get('name', '')}: {have}/{wanted['averageUtilization']}%"
    if wanted.get("averageValue") is not None:
        prefix = f"{source['name']}: " if metric["type"] == "Resource" else ""
        suffix = " (avg)" if metric["type"] == "External" else ""
        return f"{prefix}{now.get('averageValue', UNKNOWN)}/{wanted['averageValue']}{suffix}"
    return f"{now.get('value', UNKNOWN)}/{wanted.get('value', '')}"


def _hpa_targets(hpa: Object) -> str:
    metrics = dig(hpa, "spec", "metrics") or []
    current = dig(hpa, "status", "currentMetrics") or []
    texts = []
    for index, metric in enumerate(metrics[:2]):
        kind = metric["type"][:1].lower() + metric["type"][1:]
        texts.append(_hpa_target(metric, current[index].get(kind) if index < len(current) else None))
    more = f" + {len(metrics) - 2} more..." if len(metrics) > 2 else ""
    return ", ".join(texts) + more or NONE


def _reference(obj: Object) -> str:
    target = dig(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def _controller(obj: Object) -> str:
    owner = controller_of(obj)
    if owner is None:
        return NONE
    group = owner.get("apiVersion", "").rpartition("/")[0]
    return f"{owner.get('kind', '').lower()}{f'.{group}' if group else ''}/{owner.get('name')}"


def _or_not_applicable(*path: str) -> Callable[[Object], str]:
    return lambda obj: "N/A" if (value := dig(obj, *path)) is None else str(value)


def _last_schedule(obj: Object) -> str:
    moment = dig(obj, "status", "lastScheduleTime")
    return since(moment) if moment else NONE


def _suspension(obj: Object) -> str:
    suspend = dig(obj, "spec", "suspend")
    return "<unset>" if suspend is None else "True" if suspend else "False"


_COMMON = (AGE, CONTAINERS, IMAGES, SELECTOR)
_SPEC_REPLICAS, _READY = ("spec", "replicas"), ("status", "readyReplicas")
DEPLOYMENTS = (
    NAME,
    Column("Ready", _of(_READY, _SPEC_REPLICAS)),
    at("Up-to-date", "status", "updatedReplicas", default=0),
    at("Available", "status", "availableReplicas", default=0),
    *_COMMON,
)
REPLICA_SETS = (
    NAME,
    at("Desired", *_SPEC_REPLICAS, default=0, kind="integer"),
    at("Current", "status", "replicas", default=0, kind="integer"),
    at("Ready", *_READY, default=0, kind="integer"),
    *_COMMON,
)
STATEFUL_SETS = (NAME, Column("Ready", _of(_READY, _SPEC_REPLICAS)), AGE, CONTAINERS, IMAGES)
DAEMON_SETS = (
    NAME,
    at("Desired", "status", "desiredNumberScheduled", default=0, kind="integer"),
    at("Current", "status", "currentNumberScheduled", default=0, kind="integer"),
    at("Ready", "status", "numberReady", default=0, kind="integer"),
    at("Up-to-date", "status", "updatedNumberScheduled", default=0, kind="integer"),
    at("Available", "status", "numberAvailable", default=0, kind="integer"),
    Column("Node Selector", lambda o: selector(dig(o, "spec", "template", "spec", "nodeSelector"))),
    *_COMMON,
)
JOBS = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", lambda o: f"{dig(o, 'status', 'succeeded') or 0}/{dig(o, 'spec', 'completions') or 1}"),
    Column("Duration", _job_duration),
    *_COMMON,
)
CRON_JOBS = (
    NAME,
    at("Schedule", "spec", "schedule"),
    at("Timezone", "spec", "timeZone", default=NONE),
    Column("Suspend", _suspension, "boolean"),
    count("Active", "status", "active"),
    Column("Last Schedule", _last_schedule),
    AGE,
    CONTAINERS,
    IMAGES,
    wide("Selector", lambda obj: selector(dig(obj, "spec", "jobTemplate", "spec", "selector"))),
)
CONTROLLER_REVISIONS = (
    NAME,
    Column("Controller", _controller),
    at("Revision", "revision", default=0),
    AGE,
)
POD_TEMPLATES = (
    NAME,
    Column("Containers", CONTAINERS.cell),
    Column("Images", IMAGES.cell),
    Column("Pod Labels", _labels),
)
DISRUPTION_BUDGETS = (
    NAME,
    Column("Min Available", _or_not_applicable("spec", "minAvailable")),
    Column("Max Unavailable", _or_not_applicable("spec", "maxUnavailable")),
    at("Allowed Disruptions", "status", "disruptionsAllowed", default=0, kind="integer"),
    AGE,
)
AUTOSCALERS = (
    NAME,
    Column("Reference", _reference),
    Column("Targets", _hpa_targets),
    at("MinPods", "spec", "minReplicas", default="<unset>"),
    at("MaxPods", "spec", "maxReplicas", default=0),
    at("Replicas", "status", "currentReplicas", default=0),
    AGE,
)
