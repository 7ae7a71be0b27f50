"""Which objects the API server does not ask our webhooks about: those that an installation brings, and no tenant's."""

from __future__ import annotations

import pytest

from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, LLM_INFERENCE_SERVICE_CONFIGS
from isvc.apiserver.cel import compile_expression
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.programs import isvc_manager, llmisvc_manager
from isvc.programs.cluster_manifests import webhooks
from isvc.programs.program import Program

PART_OF_US = {"app.kubernetes.io/part-of": "isvc"}  # the labels of what ships


def is_asked(program: Program, resource: Resource, namespace: str, labels: Object, operation: str = "CREATE") -> bool:
    obj = {"metadata": {"name": "it", "labels": labels}, "spec": {"replicas": 1}}
    request = {"operation": operation, "namespace": namespace}
    (found, *_) = [
        hook
        for configuration in webhooks(program, "kserve")
        for hook in configuration["webhooks"]
        if hook["rules"][0]["resources"][0] == resource.plural and "matchConditions" in hook
    ]
    variables = {"object": obj, "oldObject": {**obj, "spec": {}}, "request": request}
    return all(compile_expression(each["expression"]).evaluate(variables) for each in found["matchConditions"])


@pytest.mark.parametrize(
    ("namespace", "labels", "operation", "asked"),
    [
        pytest.param("kserve", PART_OF_US, "CREATE", False, id="installed"),
        pytest.param("kserve", PART_OF_US, "UPDATE", True, id="installed and edited"),
        pytest.param("kserve", {}, "CREATE", True, id="the platform's own"),
        pytest.param("tenant", PART_OF_US, "CREATE", True, id="a tenant's, with our label"),
    ],
)
def test_a_configuration_is_judged_unless_it_is_installed(
    namespace: str, labels: Object, operation: str, asked: bool
) -> None:
    assert is_asked(llmisvc_manager.PROGRAM, LLM_INFERENCE_SERVICE_CONFIGS, namespace, labels, operation) is asked


def test_runtimes_of_the_cluster_lie_in_no_namespace() -> None:
    assert not is_asked(isvc_manager.PROGRAM, CLUSTER_SERVING_RUNTIMES, "", PART_OF_US)
    assert is_asked(isvc_manager.PROGRAM, CLUSTER_SERVING_RUNTIMES, "", {})
