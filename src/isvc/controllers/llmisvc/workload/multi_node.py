"""Workloads that span nodes: claimed devices, accounts, and a LeaderWorkerSet for each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.accounts import Account, attempt, worker_account, worker_permissions
from isvc.controllers.llmisvc.workload.devices import claim_template
from isvc.controllers.llmisvc.workload.phases import Phase, main_phase, prefill_phase
from isvc.controllers.llmisvc.workload.steps import Wanted, context, require
from isvc.controllers.llmisvc.workload.worker_set import leader_template, worker_set
from isvc.engine.plan import Child
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
        yield _required(observed, main, main_set)
    if prefill is not None and prefill.spans_nodes:
        with context("failed to reconcile multi-node prefill workload: failed to build the expected prefill LWS"):
            prefill_set = worker_set(observed, prefill, prefill_account)
        yield _required(observed, prefill, prefill_set)


def _account(observed: Observed, phase: Phase) -> Account:
    with context(f"{_ACCOUNTS}: failed to create expected multi node service account"):
        return worker_account(observed, phase)


def _permission(child: Child) -> Wanted:
    return Wanted(child, f"{_ACCOUNTS}: {attempt(child, 'multi node')}")


def _required(observed: Observed, phase: Phase, child: Child) -> Wanted:
    words = f"failed to reconcile multi-node {phase.name} workload"
    with context(words):
        require(observed, LEADER_WORKER_SETS, phase.worker_set)
    return Wanted(child, words)
