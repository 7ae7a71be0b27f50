"""The pods of rendered workloads, as our webhook leaves them: with the storage initializer, agent and credentials."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final

from isvc.api.resources import INFERENCE_SERVICES
from isvc.insight.simulation.kinds import resource_of
from isvc.insight.simulation.server import Place
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, dig, labels_of, name_of, namespace_of
from isvc.kube.resource import DEPLOYMENTS, PODS, Resource
from isvc.serving.annotations import SERVICE
from isvc.serving.thirdparty import KNATIVE_SERVICES, LEADER_WORKER_SETS

_TEMPLATES: Final[Mapping[Resource, Mapping[str, tuple[str, ...]]]] = {
    DEPLOYMENTS: {"": ("spec", "template")},
    KNATIVE_SERVICES: {"": ("spec", "template")},
    LEADER_WORKER_SETS: {
        "": ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        "-worker": ("spec", "leaderWorkerTemplate", "workerTemplate"),
    },
}


def pod_templates(workload: Object) -> Iterator[tuple[str, Object]]:
    """Yields the pod templates of a workload, by what is added to its name."""
    resource = resource_of(workload)
    paths = _TEMPLATES.get(resource, {}) if resource else {}
    for suffix, path in paths.items():
        if (template := dig(workload, *path)) is not None:
            yield suffix, template


async def pods_of(simulation: Simulation, workload: Object) -> list[Object]:
    """Raises the `ApiError` of a pod that the webhook refuses."""
    pods = [_pod(workload, suffix, template) for suffix, template in pod_templates(workload)]
    return [await simulation.client.create(PODS, pod, dry_run=True) for pod in pods]


async def pods_of_services(simulation: Simulation) -> dict[Place, Object]:
    """Returns a pod of each workload of InferenceServices as the webhook would make it now, by its place."""
    found: dict[Place, Object] = {}
    for resource in (DEPLOYMENTS, KNATIVE_SERVICES):
        for workload in list(simulation.objects.list(resource)):
            if SERVICE in (dig(workload, "spec", "template", "metadata", "labels") or {}):
                with contextlib.suppress(ApiError):  # refused before, refused after
                    (found[resource, namespace_of(workload), name_of(workload)],) = await pods_of(simulation, workload)
    return found


def service_of_pod(pod: Object) -> Place:
    return INFERENCE_SERVICES, namespace_of(pod), labels_of(pod)[SERVICE]


def _pod(workload: Object, suffix: str, template: Object) -> Object:
    given = template.get("metadata") or {}
    metadata = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
    return PODS.manifest(
        {"name": name_of(workload) + suffix, "namespace": namespace_of(workload), **metadata},
        spec=template.get("spec") or {},
    )
