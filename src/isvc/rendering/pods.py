"""The pods of rendered workloads, as our webhook leaves them: with the storage initializer, agent and credentials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import DEPLOYMENTS, PODS, Resource
from isvc.serving.thirdparty import KNATIVE_SERVICES, LEADER_WORKER_SETS
from isvc.simulation.kinds import resource_of
from isvc.simulation.simulation import Simulation

_TEMPLATES: Final[Mapping[Resource, Mapping[str, tuple[str, ...]]]] = {
    DEPLOYMENTS: {"": ("spec", "template")},
    KNATIVE_SERVICES: {"": ("spec", "template")},
    LEADER_WORKER_SETS: {
        "": ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        "-worker": ("spec", "leaderWorkerTemplate", "workerTemplate"),
    },
}


def pod_templates(workload: Object) -> Iterator[tuple[str, Object]]:
    """The pod templates of a workload, by what is added to its name."""
    resource = resource_of(workload)
    paths = _TEMPLATES.get(resource, {}) if resource else {}
    for suffix, path in paths.items():
        if (template := dig(workload, *path)) is not None:
            yield suffix, template


async def pods_of(simulation: Simulation, workload: Object) -> list[Object]:
    """Raises the `ApiError` of a pod that the webhook refuses."""
    pods = [_pod(workload, suffix, template) for suffix, template in pod_templates(workload)]
    return [await simulation.client.create(PODS, pod, dry_run=True) for pod in pods]


def _pod(workload: Object, suffix: str, template: Object) -> Object:
    given = template.get("metadata") or {}
    metadata = {key: given[key] for key in ("labels", "annotations") if given.get(key)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name_of(workload) + suffix, "namespace": namespace_of(workload), **metadata},
        "spec": template.get("spec") or {},
    }
