import json

import pytest

from isvc.api import InferenceService
from isvc.api.codec import decode
from isvc.api.inferencegraph import InferenceGraphSpec
from isvc.controllers.inferencegraph import router
from isvc.controllers.inferencegraph.resolve import resolve
from isvc.serving.endpoints import NoEndpoint


def none(name: str) -> None:
    """Nothing by that name."""


def test_fields_stand_in_the_order_of_the_types_and_zero_pointers_are_kept():
    spec = {
        "scaleTarget": 0,
        "maxReplicas": 0,
        "minReplicas": 0,
        "resources": {"requests": {"memory": "1024Mi", "cpu": "1000m"}},
        "nodes": {"z": {"routerType": "Switch"}, "root": {"steps": [{"condition": "a>1", "name": "x", "weight": 0}]}},
    }
    assert router.graph_json(decode(InferenceGraphSpec, spec)) == (
        '{"nodes":{"root":{"routerType":"","steps":[{"name":"x","weight":0,"condition":"a\\u003e1"}]},'
        '"z":{"routerType":"Switch"}},"resources":{"requests":{"cpu":"1","memory":"1Gi"}},'
        '"minReplicas":0,"scaleTarget":0}'
    )


def test_nested_kubernetes_types_keep_the_order_of_their_fields():
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"b": "2", "a": "1"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    tolerations = [{"effect": "NoSchedule", "operator": "Exists", "key": "gpu"}]
    text = router.graph_json(InferenceGraphSpec(tolerations=tolerations, affinity=affinity))
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
    result = resolve(spec, {"a": InferenceService.decode(service)}.get, none)
    urls = [step.service_url for step in result.nodes["root"].steps]
    assert urls == ["http://a.ns.svc/v1/models/a:predict", "http://b", ""]
    with pytest.raises(NoEndpoint, match="InferenceService a does not exist"):
        resolve(spec, none, none)
