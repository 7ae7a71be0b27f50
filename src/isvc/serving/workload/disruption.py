"""PodDisruptionBudgets: how many pods of a workload a drain may take at a time.

Only `maxUnavailable` is offered, and never 0: however many replicas there are at the moment, at least one of them may
go, and one that is not ready always. So no budget of ours keeps a node from being drained for good. A workload that has
one replica at most gets none.
"""

from __future__ import annotations

from collections.abc import Mapping

from isvc.api.annotations import DISRUPTION_BUDGET
from isvc.engine.plan import Child
from isvc.kube.objects import Object
from isvc.kube.resource import POD_DISRUPTION_BUDGETS
from isvc.serving import names
from isvc.serving.config.sections import ALLOWS_DISRUPTION, DeployConfig, allows_disruption
from isvc.serving.workload.component import Component, WorkloadRefused

NOBODY = "none"
"""The value of the annotation with which a service declines the budget that the configuration gives to all."""


def component_budget(component: Component, deploy: DeployConfig) -> Child | None:
    """Returns the budget of a component in Standard mode. Workers of a multi-node predictor go with their head."""
    selector = {"app": names.app(component.name)}
    labels = {**component.labels, **selector}
    metadata = {"name": component.name, "namespace": component.namespace, "labels": labels}
    return disruption_budget(metadata, selector, _most_replicas(component), component.annotations, deploy)


def disruption_budget(
    metadata: Object,
    selector: Mapping[str, str],
    most: int | None,
    annotations: Mapping[str, str],
    deploy: DeployConfig,
) -> Child | None:
    """Returns the budget of pods with these labels, of which there are `most`; None stands for any number."""
    asked = annotations.get(DISRUPTION_BUDGET) or deploy.pod_disruption_budget.max_unavailable
    if asked in ("", NOBODY):
        return None
    if not allows_disruption(asked):
        what = f"the annotation {DISRUPTION_BUDGET} {ALLOWS_DISRUPTION}, or {NOBODY}, got {asked!r}"
        raise WorkloadRefused(what, reason="InvalidDisruptionBudget")
    if most is not None and most <= 1:
        return None
    manifest = POD_DISRUPTION_BUDGETS.manifest(
        metadata,
        spec={
            "maxUnavailable": int(asked) if asked.isdigit() else asked,
            "selector": {"matchLabels": dict(selector)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )
    return Child(POD_DISRUPTION_BUDGETS, manifest)


def _most_replicas(component: Component) -> int | None:
    """Returns how many replicas a component can come to; None where somebody else decides."""
    least = component.spec.least_replicas
    match component.autoscaler:
        case "external":
            return None
        case "none":
            return least
        case _:
            return max(component.spec.max_replicas, least)
