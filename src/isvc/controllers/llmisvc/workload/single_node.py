"""Workloads whose replicas run on one node: a Deployment for each, and what the routing sidecar may do."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.accounts import attempt, single_node_permissions
from isvc.controllers.llmisvc.workload.deployment import deployment
from isvc.controllers.llmisvc.workload.phases import main_phase, prefill_phase
from isvc.controllers.llmisvc.workload.steps import Wanted, context


def single_node(observed: Observed) -> Iterator[Wanted]:
    main, prefill = main_phase(observed), prefill_phase(observed)
    words = "failed to get expected main deployment: failed to attach model artifacts to main deployment"
    with context(f"failed to reconcile service account: {words}"):
        child = None if main.spans_nodes else deployment(observed, main)
    for permission in single_node_permissions(observed):
        yield Wanted(permission, f"failed to reconcile service account: {attempt(permission, 'single node')}")
    if child is not None:
        yield Wanted(child, "failed to reconcile main workload")
    if prefill is not None and not prefill.spans_nodes:
        words = "failed to get expected prefill deployment: failed to attach model artifacts to prefill deployment"
        with context(f"failed to reconcile prefill workload: {words}"):
            child = deployment(observed, prefill)
        which = f"{observed.namespace}/{prefill.deployment}"
        yield Wanted(child, f"failed to reconcile prefill workload: failed to reconcile prefill deployment {which}")
