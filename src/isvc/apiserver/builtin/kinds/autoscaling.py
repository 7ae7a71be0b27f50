"""autoscaling and policy: HorizontalPodAutoscalers and PodDisruptionBudgets."""

from __future__ import annotations

from typing import Final

from isvc.apiserver.builtin import conversion
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import autoscaling as rules
from isvc.apiserver.tables import workloads
from isvc.kube.resource import HORIZONTAL_POD_AUTOSCALERS, Resource


def _autoscaler(version: str) -> Kind:
    return Kind(
        resource=HORIZONTAL_POD_AUTOSCALERS._replace(version=version),
        short_names=("hpa",),
        categories=("all",),
        columns=workloads.AUTOSCALERS,
        status=True,
        check=rules.autoscaler,
        convert=conversion.autoscaler,
        storage=HORIZONTAL_POD_AUTOSCALERS,
    )


KINDS: Final = (
    _autoscaler("v2"),
    _autoscaler("v1"),
    Kind(
        resource=Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget"),
        short_names=("pdb",),
        columns=workloads.DISRUPTION_BUDGETS,
        status=True,
        generation=True,
        version_required=True,
        check=rules.disruption_budget,
    ),
)
