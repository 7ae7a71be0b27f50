"""From evidence to findings: the root cause first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from isvc.insight.diagnosis import container_causes as container
from isvc.insight.diagnosis import edit_causes as edits
from isvc.insight.diagnosis import model_causes as model
from isvc.insight.diagnosis import service_causes as service
from isvc.insight.diagnosis import traffic_causes as traffic
from isvc.insight.diagnosis import workload_causes as workload
from isvc.insight.diagnosis.evidence import Evidence, failing_conditions
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.kube.conditions import TRUE, condition_of
from isvc.kube.readiness import READY
from isvc.serving.workload.sleep import is_waking

Cause = Callable[[Evidence], Iterator[Finding]]

CONTAINERS: Final[tuple[Cause, ...]] = (
    container.image,
    container.disk,
    container.configuration,
    container.unschedulable,
    container.memory,
    container.download,
    container.crash,
    container.probe,
)

#: What keeps a service from being ready, from what stops everything to what may pass: each group hides those after it.
BLOCKING: Final[tuple[tuple[Cause, ...], ...]] = (
    (service.namespace_deleted, service.deleted, service.stopped),
    (service.bad_config, service.not_planned),
    (service.name_taken, service.child_refused),
    (workload.pods_refused,),
    (model.not_cached, model.download_failed, model.downloading),
    CONTAINERS,
    (traffic.gateway, traffic.route_refused),
    (workload.knative, workload.scaler_away),
    (service.malformed_status, service.not_reconciled, container.starting),
    (workload.autoscaler,),
)
SUSPICIOUS: Final[tuple[Cause, ...]] = (
    workload.old_revision,
    workload.too_few,
    workload.scaler_away,
    workload.autoscaler,
    workload.at_limit,
    traffic.gateway,
    service.bad_config,
    edits.children_outdated,
    edits.pods_outdated,
    model.download_failed,
)


def diagnose(evidence: Evidence) -> list[Finding]:
    """Finds what keeps a service from being ready, or is odd about one that is. Empty if all is well."""
    found = _odd(evidence) if evidence.is_ready and not _is_going(evidence) else _blocking(evidence)
    return [replace(each, chain=(*_conditions(evidence), *each.chain)).without_secrets() for each in _distinct(found)]


def _blocking(evidence: Evidence) -> list[Finding]:
    """Returns the findings of the first group that has one which blocks; else what is being waited for."""
    waiting: list[Finding] = []
    for group in BLOCKING:
        found = [each for cause in group for each in cause(evidence)]
        if blocking := [each for each in found if each.level is Level.BLOCKS]:
            return [*blocking, *evidence.suspicions]
        waiting = waiting or found
    return [*(waiting or service.condition_says(evidence)), *evidence.suspicions]


def _odd(evidence: Evidence) -> list[Finding]:
    """Finds what is odd about a service that is ready. Where pods are missing, also why."""
    found = [each for cause in SUSPICIOUS for each in cause(evidence)]
    if found:
        why = [each for cause in (workload.pods_refused, *CONTAINERS) for each in cause(evidence)]
        found = [*why, *found] if is_waking(evidence.service) else [*found, *why]
    return [replace(each, level=Level.WARNS) for each in (*found, *evidence.suspicions)]


def _is_going(evidence: Evidence) -> bool:
    return any(True for cause in (service.namespace_deleted, service.deleted) for _ in cause(evidence))


def _conditions(evidence: Evidence) -> tuple[str, ...]:
    """Returns the start of every chain: the condition that is not True."""
    ready = condition_of(evidence.service, READY)
    if not ready or ready.get("status") == TRUE:
        return ()
    failing = failing_conditions(evidence.service)
    failing.sort(key=lambda each: (each["type"] in (READY, "IngressReady"), each["status"] != "False"))
    shown = failing[0] if failing else ready
    reason = f" ({shown['reason']})" if shown.get("reason") else ""
    return (f"{evidence.kind} {evidence.name}: {shown['type']} is {shown['status']}{reason}",)


def _distinct(findings: list[Finding]) -> list[Finding]:
    """Returns each cause once, as several pods of a workload fail alike."""
    seen: dict[str, Finding] = {}
    for finding in findings:
        seen.setdefault(finding.cause, finding)
    return list(seen.values())
