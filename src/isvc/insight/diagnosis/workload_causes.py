"""Causes in Deployments, ReplicaSets, Knative Services and autoscalers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.diagnosis.service_causes import refusal
from isvc.kube.conditions import TRUE, condition_of, conditions_of
from isvc.kube.objects import Object, annotations_of, dig, name_of, uid_of
from isvc.kube.owners import is_controlled_by
from isvc.kube.pods import replicas_of
from isvc.serving.workload.scalers import said_of_scaling

_REVISION = "deployment.kubernetes.io/revision"


def pods_refused(evidence: Evidence) -> Iterator[Finding]:
    """The API server takes no pods from a ReplicaSet: a quota, a webhook, a policy."""
    for replica_set in evidence.of_kind("ReplicaSet"):
        wanted, there = dig(replica_set, "spec", "replicas") or 0, dig(replica_set, "status", "replicas") or 0
        if wanted <= there:
            continue
        for event in evidence.events_of(replica_set):
            if event.get("reason") == "FailedCreate":
                yield _pods_refused(evidence, replica_set, str(event.get("message") or ""))
                break
    for deployment in evidence.of_kind("Deployment"):
        failure = condition_of(deployment, "ReplicaFailure")
        if failure.get("status") == TRUE:
            yield _pods_refused(evidence, deployment, str(failure.get("message") or ""))


def _pods_refused(evidence: Evidence, workload: Object, message: str) -> Finding:
    found = refusal(f"pods of {workload.get('kind')} {name_of(workload)} cannot be created", message)
    return replace(found, chain=evidence.chain_to(workload))


def knative(evidence: Evidence) -> Iterator[Finding]:
    """Repeats what a Knative Service says about its revision or its route."""
    for service in evidence.of_kind("Service"):
        if not str(service.get("apiVersion")).startswith("serving.knative.dev/"):
            continue
        for kind in ("ConfigurationsReady", "RoutesReady", "Ready"):
            found = condition_of(service, kind)
            if found.get("status") == "False":
                message = (
                    f"Knative Service {name_of(service)} is not ready: {found.get('message') or found.get('reason')}"
                )
                remedy = "correct the service, and it makes a new revision"
                yield Finding("KnativeNotReady", message, remedy, chain=evidence.chain_to(service))
                break


def autoscaler(evidence: Evidence) -> Iterator[Finding]:
    """An autoscaler that cannot read its metric scales nothing. It keeps no pod from being ready."""
    for scaler in (*evidence.of_kind("HorizontalPodAutoscaler"), *evidence.of_kind("ScaledObject")):
        for kind in ("ScalingActive", "AbleToScale", "Ready"):
            found = condition_of(scaler, kind)
            # There are no metrics of pods that just started.
            if str(found.get("lastTransitionTime") or "") > evidence.recently:
                continue
            if found.get("status") == "False" and found.get("reason") != "ScalingDisabled":
                message = (
                    f"{scaler['kind']} {name_of(scaler)} does not scale: {found.get('message') or found.get('reason')}"
                )
                remedy = (
                    "repair what serves that metric (metrics-server, an adapter), or set the autoscaler class to none"
                )
                yield Finding("NoMetrics", message, remedy, Level.WARNS, evidence.chain_to(scaler))
                break


def scaler_away(evidence: Evidence) -> Iterator[Finding]:
    """Whoever wakes or scales a service is away."""
    if said := said_of_scaling(conditions_of(evidence.service)):
        yield Finding(*said)


def at_limit(evidence: Evidence) -> Iterator[Finding]:
    for scaler in evidence.of_kind("HorizontalPodAutoscaler"):
        limited = condition_of(scaler, "ScalingLimited")
        most = dig(scaler, "spec", "maxReplicas")
        if limited.get("status") == TRUE and limited.get("reason") == "TooManyReplicas":
            message = f"HorizontalPodAutoscaler {name_of(scaler)} wants more than its {most} replicas"
            yield Finding("AutoscalerAtLimit", message, "raise maxReplicas", Level.WARNS, evidence.chain_to(scaler))


def too_few(evidence: Evidence) -> Iterator[Finding]:
    """Fewer replicas are available than wanted, although the service is ready."""
    for deployment in evidence.of_kind("Deployment"):
        wanted, there = replicas_of(deployment), dig(deployment, "status", "availableReplicas") or 0
        if there < wanted and evidence.is_ready:
            message = f"Deployment {name_of(deployment)} has {there} of {wanted} replicas available"
            remedy = "see why its other pods are not ready"
            yield Finding("FewerReplicas", message, remedy, Level.WARNS, evidence.chain_to(deployment))


def old_revision(evidence: Evidence) -> Iterator[Finding]:
    """Pods of an earlier template serve, because those of the newest are not ready."""
    for deployment in evidence.of_kind("Deployment"):
        sets = [each for each in evidence.of_kind("ReplicaSet") if is_controlled_by(each, uid_of(deployment))]
        sets.sort(key=lambda each: int(annotations_of(each).get(_REVISION) or 0))
        if len(sets) < 2 or not evidence.is_ready:
            continue
        *earlier, newest = sets
        serving = [each for each in earlier if dig(each, "status", "readyReplicas")]
        if serving and not dig(newest, "status", "readyReplicas"):
            which = ", ".join(annotations_of(each).get(_REVISION, "?") for each in serving)
            message = (
                f"an earlier version of Deployment {name_of(deployment)} serves (revision {which}), "
                f"because revision {annotations_of(newest).get(_REVISION, '?')} does not become ready"
            )
            remedy = "see why its new pods are not ready"
            yield Finding("OldRevisionServes", message, remedy, Level.WARNS, evidence.chain_to(newest))
