import json

import pytest

from isvc.api import InferenceService
from isvc.api.codec import decode
from isvc.api.inferencegraph import STEP_POLICIES, InferenceGraphSpec, read_policies
from isvc.api.validation.inferencegraph import validate_graph
from isvc.controllers.inferencegraph import router
from isvc.controllers.inferencegraph.resolve import Resolved, resolve
from isvc.serving.endpoints import NoEndpoint


def none(name: str) -> None:
    """Nothing by that name."""


def graph_json(spec: InferenceGraphSpec) -> str:
    return router.graph_json(Resolved(spec, frozenset()), {})


def test_fields_stand_in_the_order_of_the_types_and_zero_pointers_are_kept():
    spec = {
        "scaleTarget": 0,
        "maxReplicas": 0,
        "minReplicas": 0,
        "resources": {"requests": {"memory": "1024Mi", "cpu": "1000m"}},
        "nodes": {"z": {"routerType": "Switch"}, "root": {"steps": [{"condition": "a>1", "name": "x", "weight": 0}]}},
    }
    assert graph_json(decode(InferenceGraphSpec, spec)) == (
        '{"nodes":{"root":{"routerType":"","steps":[{"name":"x","weight":0,"condition":"a\\u003e1"}]},'
        '"z":{"routerType":"Switch"}},"resources":{"requests":{"cpu":"1","memory":"1Gi"}},'
        '"minReplicas":0,"scaleTarget":0}'
    )


def test_nested_kubernetes_types_keep_the_order_of_their_fields():
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"b": "2", "a": "1"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    tolerations = [{"effect": "NoSchedule", "operator": "Exists", "key": "gpu"}]
    text = graph_json(InferenceGraphSpec(tolerations=tolerations, affinity=affinity))
    assert text.index('"labelSelector"') < text.index('"topologyKey"')
    assert '"matchLabels":{"a":"1","b":"2"}' in text
    assert '"tolerations":[{"key":"gpu","operator":"Exists","effect":"NoSchedule"}]' in text
    assert json.loads(text)["affinity"] == affinity


def test_named_services_get_their_address_and_given_addresses_stay():
    service = {
        "metadata": {"name": "a"},
        "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://x"}}},
        "status": {"address": {"url": "http://a.ns.svc"}},
    }
    steps = [{"serviceName": "a"}, {"serviceUrl": "http://b"}, {"nodeName": "other"}]
    spec = decode(InferenceGraphSpec, {"nodes": {"root": {"steps": steps}}})
    result = resolve(spec, {"a": InferenceService.decode(service)}.get, none, none)
    urls = [step.service_url for step in result.spec.nodes["root"].steps]
    assert urls == ["http://a.ns.svc/v1/models/a:predict", "http://b", ""]
    with pytest.raises(NoEndpoint, match="InferenceService a does not exist") as error:
        resolve(spec, none, none, none)
    assert error.value.remedy == "create it, or take it out of the graph"


def test_llms_are_called_at_the_path_that_was_asked_for_and_policies_reach_their_steps():
    addresses = [
        {"name": "gateway-external", "url": "https://models.test/ns/chat"},
        {"name": "gateway-internal-model-routing", "url": "http://gate.svc.cluster.local/"},
        {"name": "gateway-internal", "url": "http://gate.svc.cluster.local/ns/chat"},
    ]
    llm = {"metadata": {"name": "chat"}, "status": {"addresses": addresses}}
    steps = [{"name": "guard", "serviceUrl": "http://guard"}, {"serviceName": "chat"}]
    spec = decode(InferenceGraphSpec, {"nodes": {"root": {"routerType": "Sequence", "steps": steps}}})
    annotation = '{"root/guard": {"timeoutSeconds": 0.5}, "root/1": {"retries": 2}}'
    policies = read_policies({STEP_POLICIES: annotation}, spec)
    resolved = resolve(spec, none, none, {"chat": llm}.get)
    guard, chat = json.loads(router.graph_json(resolved, policies))["nodes"]["root"]["steps"]
    assert guard == {"name": "guard", "serviceUrl": "http://guard", "timeoutSeconds": 0.5}
    url = "http://gate.svc.cluster.local/ns/chat"
    assert chat == {"serviceName": "chat", "serviceUrl": url, "appendRequestPath": True, "retries": 2}
    with pytest.raises(NoEndpoint, match="LLMInferenceService chat is not ready"):
        resolve(spec, none, none, {"chat": {"metadata": {"name": "chat"}}}.get)


@pytest.mark.parametrize(
    ("policies", "fault"),
    [
        ("no json", "is no JSON"),
        ('{"root/x": {}}', "root/x is no step; there are root/guard, root/1"),
        ('{"root/1": {}}', "leads to a node"),
        ('{"root/guard": {"retries": -1}}', "retries"),
        ('{"root/guard": {"retries": 11}}', "retries"),
        ('{"root/guard": {"timeoutSeconds": 0}}', "timeoutSeconds"),
        ('{"root/guard": {"timeout": 1}}', "timeout"),
    ],
)
def test_policies_that_cannot_be_followed_are_refused_by_name(policies, fault):
    steps = [{"name": "guard", "serviceUrl": "http://guard"}, {"nodeName": "root"}]
    nodes = {"root": {"routerType": "Sequence", "steps": steps}}
    metadata = {"name": "graph", "annotations": {STEP_POLICIES: policies}}
    graph = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "InferenceGraph", "metadata": metadata}
    [problem] = validate_graph({**graph, "spec": {"nodes": nodes}}).problems
    assert problem.path == f"metadata.annotations[{STEP_POLICIES}]"
    assert fault in problem.fault
