"""The ingress of a service, in each mode, once its components are ready."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.answers import answers
from tests.unit.controllers.inferenceservice.healthy_children import with_healthy_children

from isvc.api import InferenceService
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.status.report import stop_events
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import DEPLOYMENTS, INGRESSES, SERVICES, Resource
from isvc.serving.config import Config
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.thirdparty import HTTP_ROUTES, KNATIVE_SERVICES, OPTIONAL, VIRTUAL_SERVICES

CONTAINER = {"name": "kserve-container", "image": "server:1"}
RUNTIME = {
    "metadata": {"name": "server"},
    "spec": {"supportedModelFormats": [{"name": "sklearn", "autoSelect": True}], "containers": [CONTAINER]},
}
SERVICE: dict[str, Any] = {
    "metadata": {"name": "iris", "namespace": "ns"},
    "spec": {
        "predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}},
        "transformer": {"containers": [CONTAINER]},
    },
}
INGRESS = """{
  "ingressGateway": "istio/public", "localGateway": "istio/local", "localGatewayService": "local.istio.svc",
  "kserveIngressGateway": "kserve/gate", "enableGatewayApi": %s
}"""
BY_PATH = {"ingressDomain": "localhost:8080", "pathTemplate": "/at/{{ .Name }}/", "pathBasedURL": True}


def fresh(mode: str, *, gateway: bool, service: dict[str, Any] = SERVICE, **ingress: object) -> Observed:
    deploy = f'{{"defaultDeploymentMode": "{mode}"}}'
    settings = json.dumps({**json.loads(INGRESS % str(gateway).lower()), **ingress})
    config = Config.parse({"ingress": settings, "deploy": deploy})
    return Observed(
        service,
        InferenceService.decode(service),
        config,
        runtimes=Runtimes((), (Runtime.of(RUNTIME, cluster=True),)),
        served=OPTIONAL,
        answers=answers("ns"),
        now="2026-01-01T00:00:00Z",
    )


def named(planned: Any, resource: Resource) -> dict[str, Object]:
    return {name_of(child.manifest): child.manifest for child in planned.wanted() if child.resource == resource}


def test_behind_an_ingress() -> None:
    observed = fresh("Standard", gateway=False)
    planned = plan(with_healthy_children(observed))
    assert named(planned, DEPLOYMENTS).keys() == {"iris-predictor", "iris-transformer"}
    rules = named(planned, INGRESSES)["iris"]["spec"]["rules"]
    backends = {rule["host"]: rule["http"]["paths"][0]["backend"]["service"]["name"] for rule in rules}
    assert backends["iris-ns.example.com"] == "iris-transformer"


def test_behind_a_gateway() -> None:
    observed = fresh("Standard", gateway=True)
    planned = plan(with_healthy_children(observed))
    routes = named(planned, HTTP_ROUTES)
    assert routes.keys() == {"iris", "iris-predictor", "iris-transformer"}
    assert routes["iris"]["spec"]["hostnames"] == ["iris-ns.example.com"]
    assert routes["iris"]["spec"]["rules"][0]["backendRefs"][0]["name"] == "iris-transformer"
    assert named(planned, INGRESSES) == {}


def test_behind_a_gateway_at_a_path_that_is_cut_off() -> None:
    explained = {**SERVICE, "spec": {**SERVICE["spec"], "explainer": {"containers": [CONTAINER]}}}
    observed = fresh("Standard", gateway=True, service=explained, **BY_PATH)
    routes = named(plan(with_healthy_children(observed)), HTTP_ROUTES)
    assert routes["iris"]["spec"]["hostnames"] == ["iris-ns.localhost"]
    by_path = routes["iris-path"]["spec"]
    assert by_path["hostnames"] == ["localhost"]
    explain, rest = by_path["rules"]
    assert explain["matches"] == [{"path": {"type": "Exact", "value": "/at/iris/v1/models/iris:explain"}}]
    assert explain["backendRefs"][0]["name"] == "iris-explainer"
    assert explain["filters"][-1]["urlRewrite"]["path"]["replaceFullPath"] == "/v1/models/iris:explain"
    assert rest["matches"] == [{"path": {"type": "PathPrefix", "value": "/at/iris"}}]
    assert rest["backendRefs"][0]["name"] == "iris-transformer"
    assert rest["filters"][-1]["urlRewrite"]["path"]["replacePrefixMatch"] == "/"


@pytest.mark.parametrize("ingress", [{}, BY_PATH, {**BY_PATH, "pathBasedURL": False}])
def test_a_canary_shares_what_reaches_the_predictor_alone(ingress: dict[str, Any]) -> None:
    """A canary takes no requests that are for the explainer or have to be transformed first."""
    predictor = SERVICE["spec"]["predictor"]
    spec = {
        "predictor": predictor,
        "transformer": {"containers": [CONTAINER]},
        "explainer": {"containers": [CONTAINER]},
        "canary": [{"predictor": {"name": "next", **predictor}, "trafficPercent": 10}],
    }
    observed = fresh("Standard", gateway=True, service={**SERVICE, "spec": spec}, **ingress)
    routes = named(plan(with_healthy_children(observed)), HTTP_ROUTES)
    shared = {
        name: [backend["name"] for backend in rule["backendRefs"]]
        for name, route in routes.items()
        for rule in route["spec"]["rules"]
        if len(rule["backendRefs"]) > 1
    }
    assert shared == {"iris-predictor": ["iris-predictor", "iris-next-predictor"]}
    del spec["transformer"]
    observed = fresh("Standard", gateway=True, service={**SERVICE, "spec": spec}, **ingress)
    explain, predict = named(plan(with_healthy_children(observed)), HTTP_ROUTES)["iris"]["spec"]["rules"][:2]
    assert [backend["name"] for backend in explain["backendRefs"]] == ["iris-explainer"]
    assert [backend["weight"] for backend in predict["backendRefs"]] == [90, 10]


def test_on_knative_behind_istio() -> None:
    observed = fresh("Knative", gateway=False)
    planned = plan(with_healthy_children(observed))
    assert named(planned, KNATIVE_SERVICES).keys() == {"iris-predictor", "iris-transformer"}
    assert "iris" in named(planned, SERVICES)
    route = named(planned, VIRTUAL_SERVICES)["iris"]
    assert "iris.ns.example.com" in route["spec"]["hosts"]
    headers = route["spec"]["http"][-1]["headers"]["request"]["set"]
    assert headers["Host"] == "iris-transformer.ns.svc.cluster.local"


def test_on_knative_a_gateway_that_is_not_configured_is_one_clear_cause() -> None:
    planned = plan(with_healthy_children(fresh("Knative", gateway=False, localGatewayService="")))
    assert planned.stop is not None
    assert "inferenceservice-config: ingress.localGatewayService is required" in planned.stop.message
    assert [*stop_events(planned.stop)] == []
    assert named(planned, KNATIVE_SERVICES).keys() == {"iris-predictor", "iris-transformer"}
    without = fresh("Knative", gateway=False, localGatewayService="", disableIstioVirtualHost=True)
    assert plan(with_healthy_children(without)).stop is None


@pytest.mark.parametrize(
    ("mode", "gateway", "kind"),
    [("Standard", False, INGRESSES), ("Standard", True, HTTP_ROUTES), ("Knative", False, VIRTUAL_SERVICES)],
)
def test_a_fresh_service_has_no_ingress_yet(mode: str, gateway: bool, kind: Resource) -> None:
    assert named(plan(fresh(mode, gateway=gateway)), kind) == {}
