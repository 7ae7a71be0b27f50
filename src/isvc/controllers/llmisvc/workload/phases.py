"""The workloads of a service: the main one, and one that reads prompts (prefill) when the two are served apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from isvc.api.llm.workload import RolloutStrategy, WorkloadSpec
from isvc.controllers.llmisvc.observed import Merged, Observed
from isvc.controllers.llmisvc.status import conditions
from isvc.kube.objects import Object
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving.llm import labels, names
from isvc.serving.thirdparty import LEADER_WORKER_SETS

CONTAINER = "main"
"""The container that runs the model server."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One workload: its part of the merged spec, and the names, labels and conditions that belong to it.

    `raw` is that part as it is written, for what is passed on. `role` is what schedulers see, `traced_as` the role
    under which its servers send traces.
    """

    name: str
    spec: WorkloadSpec
    raw: Object
    role: str
    traced_as: str
    deployment: str
    worker_set: str
    hpa: str
    scaled_object: str
    component: str
    leader_component: str
    worker_component: str
    deployment_condition: str
    worker_set_condition: str
    scaling_condition: str

    @property
    def template(self) -> Object | None:
        """The pod; of a workload that spans nodes, the leader's."""
        return self.spec.template

    @property
    def worker(self) -> Object | None:
        return self.spec.worker

    @property
    def spans_nodes(self) -> bool:
        return self.worker is not None

    @property
    def labels(self) -> Mapping[str, str]:
        return self.spec.labels

    @property
    def rollout(self) -> Object:
        """How new pods replace old ones, as far as that is said."""
        given = self.spec.rollout_strategy or RolloutStrategy()
        said = {"maxUnavailable": given.max_unavailable, "maxSurge": given.max_surge}
        return {key: value for key, value in said.items() if value is not None}

    @property
    def workload(self) -> tuple[Resource, str]:
        """The object that holds the pods."""
        return (LEADER_WORKER_SETS, self.worker_set) if self.spans_nodes else (DEPLOYMENTS, self.deployment)


def main_phase(observed: Observed) -> Phase:
    return _main_phase(observed.name, observed.merged)


@lru_cache(maxsize=256)
def _main_phase(service: str, merged: Merged) -> Phase:
    return Phase(
        name="main",
        spec=merged.spec,
        raw=merged.raw,
        role="both" if merged.spec.prefill is None else "decode",
        traced_as="decode",
        deployment=names.deployment(service),
        worker_set=names.worker_set(service),
        hpa=names.hpa(service),
        scaled_object=names.scaled_object(service),
        component=labels.WORKLOAD,
        leader_component=labels.WORKLOAD_LEADER,
        worker_component=labels.WORKLOAD_WORKER,
        deployment_condition=conditions.MAIN_WORKLOAD_READY,
        worker_set_condition=conditions.WORKER_WORKLOAD_READY,
        scaling_condition=conditions.SCALING_READY,
    )


def prefill_phase(observed: Observed) -> Phase | None:
    spec = observed.spec.prefill
    if spec is None:
        return None
    service = observed.name
    return Phase(
        name="prefill",
        spec=spec,
        raw=observed.merged.raw["prefill"],
        role="prefill",
        traced_as="prefill",
        deployment=names.prefill_deployment(service),
        worker_set=names.prefill_worker_set(service),
        hpa=names.prefill_hpa(service),
        scaled_object=names.prefill_scaled_object(service),
        component=labels.WORKLOAD_PREFILL,
        leader_component=labels.WORKLOAD_LEADER_PREFILL,
        worker_component=labels.WORKLOAD_WORKER_PREFILL,
        deployment_condition=conditions.PREFILL_WORKLOAD_READY,
        worker_set_condition=conditions.PREFILL_WORKER_WORKLOAD_READY,
        scaling_condition=conditions.PREFILL_SCALING_READY,
    )


def phases(observed: Observed) -> tuple[Phase, ...]:
    prefill = prefill_phase(observed)
    return (main_phase(observed),) if prefill is None else (main_phase(observed), prefill)
