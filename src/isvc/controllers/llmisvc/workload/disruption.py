"""A PodDisruptionBudget for each workload of which there can be more than one replica."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.metadata import child_metadata, selected_labels, selector_of
from isvc.controllers.llmisvc.workload.phases import Phase, phases
from isvc.controllers.llmisvc.workload.steps import Wanted, context
from isvc.kube.objects import annotations_of
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving.llm import labels
from isvc.serving.workload.disruption import disruption_budget

_WORKER_SET: Final = "leaderworkerset.sigs.k8s.io/name"
"""A label of every pod of a LeaderWorkerSet."""


def disruption_budgets(observed: Observed) -> Iterator[Wanted]:
    """Pods of a group are counted one by one: when one goes, all of its group go and none of the others may."""
    for phase in phases(observed):
        words = f"failed to reconcile disruption budget of {phase.name} workload"
        metadata = child_metadata(observed, phase.workload[1], labels.labels(observed.name, phase.component))
        with context(words):
            child = disruption_budget(
                metadata,
                _selector(observed, phase),
                _most_replicas(phase),
                annotations_of(observed.raw),
                observed.config.deploy,
            )
        if child is not None:
            yield Wanted(child, words)


def _selector(observed: Observed, phase: Phase) -> Mapping[str, str]:
    if phase.spans_nodes:
        return {_WORKER_SET: phase.worker_set}
    live = observed.live.get((DEPLOYMENTS, phase.deployment)) or {}
    return selector_of(observed, phase, selected_labels(observed, phase, phase.component), live)


def _most_replicas(phase: Phase) -> int:
    if phase.spec.scaling is not None:
        return phase.spec.scaling.max_replicas
    return 1 if phase.spec.replicas is None else phase.spec.replicas
