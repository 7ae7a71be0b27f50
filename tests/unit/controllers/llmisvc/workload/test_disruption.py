"""Budgets of LLMInferenceServices: one for each workload that can have more than one replica."""

from __future__ import annotations

from typing import Any

from tests.unit.controllers.llmisvc.workload.workloads import POD, children, observed_with, workload

from isvc.controllers.llmisvc.workload.plan import plan
from isvc.kube.objects import Object
from isvc.serving.thirdparty import LEADER_WORKER_SETS

ASKED = {"annotations": {"isvc.dev/disruption-budget": "1"}}
KIND = "PodDisruptionBudget"


def budgets(metadata: Object | None = None, **spec: Any) -> dict[str, Object]:
    observed = observed_with(workload(metadata=metadata or ASKED, **spec), served=frozenset({LEADER_WORKER_SETS}))
    found = children(plan(observed))
    return {name: manifest for (kind, name), manifest in found.items() if kind == KIND}


def test_a_budget_selects_what_the_deployment_selects() -> None:
    found = children(plan(workload(metadata=ASKED, replicas=2)))
    budget, deployment = found[KIND, "llama-kserve"], found["Deployment", "llama-kserve"]
    assert budget["spec"]["selector"] == deployment["spec"]["selector"]
    assert budget["spec"]["maxUnavailable"] == 1


def test_workloads_of_one_replica_have_none() -> None:
    assert budgets() == {}
    assert budgets(prefill={"template": POD, "replicas": 3}).keys() == {"llama-kserve-prefill"}
    assert budgets(metadata={"name": "llama"}, replicas=4) == {}
    assert budgets(scaling={"maxReplicas": 1, "wva": {"hpa": {}}}) == {}


def test_of_groups_every_pod_counts() -> None:
    [budget] = budgets(replicas=2, worker=POD).values()
    assert budget["metadata"]["name"] == "llama-kserve-mn"
    assert budget["spec"]["selector"] == {"matchLabels": {"leaderworkerset.sigs.k8s.io/name": "llama-kserve-mn"}}


def test_what_is_no_budget_is_a_condition() -> None:
    stop = plan(workload(metadata={"annotations": {"isvc.dev/disruption-budget": "0"}}, replicas=2)).stop
    assert stop is not None
    assert (stop.condition, stop.reason) == ("MainWorkloadReady", "InvalidDisruptionBudget")
    assert "got '0'" in stop.message
