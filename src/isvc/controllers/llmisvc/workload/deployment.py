"""Deployments: a workload each replica of which runs on one node."""

from __future__ import annotations

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.accounts import has_sidecar, named_account, single_node_account
from isvc.controllers.llmisvc.workload.metadata import (
    child_metadata,
    object_annotations,
    pod_annotations,
    pod_labels,
    selected_labels,
    selector_of,
)
from isvc.controllers.llmisvc.workload.phases import Phase
from isvc.controllers.llmisvc.workload.pods import build_pod
from isvc.engine.plan import Child
from isvc.engine.policies import MARKED_SHARED, MARKED_WORKLOAD
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS


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
    # Without a number of replicas somebody else decides how many there are.
    if phase.spec.replicas is not None:
        spec["replicas"] = phase.spec.replicas
    manifest: Object = {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": child_metadata(observed, phase.deployment, given, object_annotations(observed, phase)),
        "spec": spec,
    }
    return Child(DEPLOYMENTS, manifest, MARKED_WORKLOAD if "replicas" in spec else MARKED_SHARED)


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
