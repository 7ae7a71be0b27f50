"""Workloads whose replicas run on one node: a Deployment for each, and what the routing sidecar may do."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.accounts import (
    attempt,
    has_sidecar,
    named_account,
    single_node_account,
    single_node_permissions,
)
from isvc.controllers.llmisvc.workload.metadata import pod_annotations, pod_labels, selected_labels, selector_of
from isvc.controllers.llmisvc.workload.phases import Phase, main_phase, prefill_phase
from isvc.controllers.llmisvc.workload.pods import build_pod, build_workload
from isvc.controllers.llmisvc.workload.steps import Wanted, context
from isvc.engine.plan import Child
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS


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


def deployment(observed: Observed, phase: Phase) -> Child:
    live = observed.live.get((DEPLOYMENTS, phase.deployment)) or {}
    fixed = selected_labels(observed, phase, phase.component)
    selector = selector_of(observed, phase, fixed, live)
    # Pods carry what a live selector asks for, even where the service's shape would say otherwise.
    given = {**pod_labels(observed, phase, fixed), **selector}
    spec: Object = {
        "selector": {"matchLabels": selector},
        "template": {
            "metadata": {"labels": given},
            "spec": _pod(observed, phase, dig(live, "spec", "template", "spec")),
        },
    }
    if annotations := pod_annotations(observed, phase):
        spec["template"]["metadata"]["annotations"] = annotations
    if strategy := _strategy(phase):
        spec["strategy"] = strategy
    return build_workload(observed, phase, given, spec)


def _pod(observed: Observed, phase: Phase, live: Object | None) -> Object:
    template = phase.template
    if template is None:
        return {}
    if phase.name == "main" and has_sidecar(template):
        account = single_node_account(observed)
        return build_pod(observed, phase, template, account=account.manifest, account_name=account.name, live=live)
    return build_pod(observed, phase, template, account=named_account(observed, template), live=live)


def _strategy(phase: Phase) -> Object | None:
    rolling = phase.rollout
    return {"type": "RollingUpdate", "rollingUpdate": rolling} if rolling else None
