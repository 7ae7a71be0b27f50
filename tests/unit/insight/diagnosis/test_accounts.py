"""A missing ServiceAccount is named with what it is for and what mends it, whoever reports it."""

from __future__ import annotations

import pytest

from isvc import render
from isvc.insight.diagnosis.accounts import missing_account
from isvc.insight.diagnosis.service_causes import refusal


def test_of_pods_that_an_api_server_refuses():
    said = 'pods "a" is forbidden: error looking up service account team/bob: serviceaccount "bob" not found'
    found = refusal("pods of ReplicaSet a cannot be created", said)
    assert found.message == (
        "pods of ReplicaSet a cannot be created, because there is no ServiceAccount team/bob, "
        "which they run as and take credentials from"
    )
    assert found.remedy.startswith("kubectl create serviceaccount bob -n team, or ")


@pytest.mark.parametrize(
    "spec",
    [
        {"template": {"serviceAccountName": "bob"}},
        {"prefill": {"template": {"serviceAccountName": "bob"}}},
        {"router": {"scheduler": {"template": {"serviceAccountName": "bob", "containers": [{"name": "main"}]}}}},
    ],
    ids=["single node", "prefill", "scheduler"],
)
def test_of_an_llm_inference_service(spec):
    service = {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": "chat", "namespace": "team"},
        "spec": {"model": {"uri": "hf://some/model", "name": "m"}, **spec},
    }
    (problem,) = render(service).problems
    found = missing_account("its pods are not created", problem.message)
    assert found is not None, problem.message
    assert "no ServiceAccount team/bob," in found.message


def test_of_nothing_else():
    assert missing_account("", 'pods "a" is forbidden: exceeded quota: tight') is None
