"""Workloads that span nodes: claimed devices, accounts, and a LeaderWorkerSet for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from isvc.api.llm.workload import ParallelismSpec
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.accounts import Account, attempt, worker_account, worker_permissions
from isvc.controllers.llmisvc.workload.devices import claim_template
from isvc.controllers.llmisvc.workload.metadata import pod_annotations, pod_labels, selected_labels
from isvc.controllers.llmisvc.workload.phases import Phase, main_phase, prefill_phase
from isvc.controllers.llmisvc.workload.pods import build_pod, build_workload
from isvc.controllers.llmisvc.workload.steps import Wanted, context, require
from isvc.engine.plan import Child
from isvc.kube.objects import Object, dig
from isvc.serving.llm import labels
from isvc.serving.thirdparty import LEADER_WORKER_SETS

_ACCOUNTS: Final = "failed to reconcile multi-node service account"
_DEVICES: Final = "failed to reconcile managed DRA"


def multi_node(observed: Observed) -> Iterator[Wanted]:
    """Accounts are looked up for workloads on one node, too: one that is missing is reported here, once for both."""
    with context(_DEVICES):
        devices = claim_template(observed)
    if devices is not None:
        yield Wanted(devices, f"{_DEVICES}: failed to reconcile Managed DRA ResourceClaimTemplate")
    main, prefill = main_phase(observed), prefill_phase(observed)
    account = _account(observed, main)
    if main.spans_nodes and not account.is_users:
        yield _permission(account.child)
    with context(f"{_ACCOUNTS}: failed to build the expected main LWS for building the Role"):
        main_set = worker_set(observed, main, account) if main.spans_nodes else None
        if main_set is None and account.is_users and main.template is not None:
            leader_template(observed, main, main.template, account)  # what it cannot fetch is reported here, too
    if main.spans_nodes or account.is_users:
        for child in worker_permissions(observed, main, account):
            yield _permission(child)
    if prefill is not None:
        prefill_account = _account(observed, prefill)
        if prefill.spans_nodes and not prefill_account.is_users:
            yield _permission(prefill_account.child)
    if main_set is not None:
        yield _require_worker_set(observed, main, main_set)
    if prefill is not None and prefill.spans_nodes:
        with context("failed to reconcile multi-node prefill workload: failed to build the expected prefill LWS"):
            prefill_set = worker_set(observed, prefill, prefill_account)
        yield _require_worker_set(observed, prefill, prefill_set)


def _account(observed: Observed, phase: Phase) -> Account:
    with context(f"{_ACCOUNTS}: failed to create expected multi node service account"):
        return worker_account(observed, phase)


def _permission(child: Child) -> Wanted:
    return Wanted(child, f"{_ACCOUNTS}: {attempt(child, 'multi node')}")


def _require_worker_set(observed: Observed, phase: Phase, child: Child) -> Wanted:
    words = f"failed to reconcile multi-node {phase.name} workload"
    with context(words):
        require(observed, LEADER_WORKER_SETS, phase.worker_set)
    return Wanted(child, words)


def worker_set(observed: Observed, phase: Phase, account: Account) -> Child:
    given = pod_labels(observed, phase, _worker_labels(observed, phase))
    template: Object = {"restartPolicy": "RecreateGroupOnPodRestart"}
    if phase.template is not None:
        template["leaderTemplate"] = leader_template(observed, phase, phase.template, account)
    template["workerTemplate"] = _template(observed, phase, given, phase.worker or {}, account, "worker")
    template |= _group(phase)
    spec: Object = {
        "leaderWorkerTemplate": template,
        "rolloutStrategy": _rollout(phase),
        "startupPolicy": "LeaderCreated",
    }
    return build_workload(observed, phase, given, spec)


def _worker_labels(observed: Observed, phase: Phase) -> dict[str, str]:
    if phase.template is not None:
        return labels.labels(observed.name, phase.worker_component)
    # Without a leader of their own kind, workers answer requests.
    role = "decode" if phase.name == "main" else phase.role
    return selected_labels(observed, phase, phase.worker_component, role)


def leader_template(observed: Observed, phase: Phase, template: Object, account: Account) -> Object:
    given = pod_labels(observed, phase, selected_labels(observed, phase, phase.leader_component))
    return _template(observed, phase, given, template, account, "leader")


def _template(
    observed: Observed, phase: Phase, given: Mapping[str, str], template: Object, account: Account, part: str
) -> Object:
    metadata: Object = {"labels": dict(given)}
    if annotations := pod_annotations(observed, phase):
        metadata["annotations"] = annotations
    deployed = observed.live.get((LEADER_WORKER_SETS, phase.worker_set))
    live = dig(deployed, "spec", "leaderWorkerTemplate", f"{part}Template", "spec")
    which = part if phase.name == "main" else f"{phase.name} {part}"
    with context(f"failed to attach model artifacts to {which} template"):
        pod = build_pod(observed, phase, template, account=account.manifest, account_name=account.name, live=live)
    return {"metadata": metadata, "spec": pod}


def _group(phase: Phase) -> Object:
    """Returns how many pods make up one replica."""
    parallelism = phase.spec.parallelism or ParallelismSpec()
    size = parallelism.size
    if size is None:
        return {}
    if phase.name == "prefill" and parallelism.is_data:
        return {"size": size, "subGroupPolicy": {"subGroupSize": size}}
    return {"size": size}


def _rollout(phase: Phase) -> Object:
    rollout: Object = {"type": "RollingUpdate"}
    if phase.rollout:
        rollout["rollingUpdateConfiguration"] = {"maxUnavailable": 1, "maxSurge": 0, **phase.rollout}
    return rollout
