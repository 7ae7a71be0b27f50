"""`status.workloads`: what runs the model, and how much of it is ready."""

from __future__ import annotations

from isvc.controllers.llmisvc.planned import Applied
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving.llm import names
from isvc.serving.thirdparty import LEADER_WORKER_SETS


def workloads(applied: Applied) -> Object:
    observed = applied.observed
    spec, service = observed.spec, observed.name
    if observed.stopped:
        return {}
    status = {"primary": _workload(applied, spec, names.deployment(service), names.worker_set(service))}
    if (prefill := spec.get("prefill")) is not None:
        deployment, worker_set = names.prefill_deployment(service), names.prefill_worker_set(service)
        status["prefill"] = _workload(applied, prefill, deployment, worker_set)
    status["service"] = {"kind": "Service", "name": names.workload_service(service)}
    scheduler = dig(spec, "router", "scheduler")
    if scheduler is not None and not dig(scheduler, "pool", "ref", "name") and scheduler.get("template") is not None:
        status["scheduler"] = _observed(applied, DEPLOYMENTS, names.scheduler(service))
    return status


def _workload(applied: Applied, spec: Object, deployment: str, worker_set: str) -> Object:
    if spec.get("worker") is not None:
        return _observed(applied, LEADER_WORKER_SETS, worker_set)
    return _observed(applied, DEPLOYMENTS, deployment)


def _observed(applied: Applied, resource: Resource, name: str) -> Object:
    count = "availableReplicas" if resource == DEPLOYMENTS else "readyReplicas"
    ready = dig(applied.live(resource, name) or {}, "status", count) or 0
    return {"apiGroup": resource.group, "kind": resource.kind, "name": name, "readyReplicas": ready}
