"""Where a Route's traffic goes, and what a Revision runs as."""

from __future__ import annotations

import pytest

from isvc.kube.objects import Object
from isvc.local.gateway.routes.graphs import graph_routes
from isvc.local.knative.configurations import revision_of
from isvc.local.knative.kinds import ROUTE
from isvc.local.knative.resource_scaling import hpa_of
from isvc.local.knative.settings import Scaling
from isvc.local.knative.traffic import Addresses, Target, Unassigned, assign, http_routes
from isvc.local.knative.workload import deployment_of, service_of

PARENT: Object = {"name": "gateway"}
LATEST: Object = {"latestRevision": True, "configurationName": "iris", "percent": 20}
PREVIOUS: Object = {"revisionName": "iris-00001", "percent": 80, "tag": "prev"}


def route(*traffic: Object, **labels: str) -> Object:
    metadata = {"name": "iris", "namespace": "ns", "labels": labels}
    return {"metadata": metadata, "spec": {"traffic": list(traffic)}}


def configuration(ready: str = "", status: str = "Unknown") -> dict[str, Object]:
    conditions = [{"type": "Ready", "status": status}]
    return {"iris": {"status": {"latestReadyRevisionName": ready, "conditions": conditions}}}


def test_targets_get_their_revisions():
    assigned = assign(route(LATEST, PREVIOUS), configuration("iris-00002"), {"iris-00001": {}})
    assert assigned == [Target("iris-00002", 20, "", True), Target("iris-00001", 80, "prev", False)]


@pytest.mark.parametrize(
    ("configurations", "status", "reason"),
    [
        ({}, "False", "ConfigurationMissing"),
        (configuration(), "Unknown", "RevisionMissing"),
        (configuration(status="False"), "False", "RevisionMissing"),
        (configuration("iris-00002"), "False", "RevisionMissing"),  # the previous one is gone
    ],
)
def test_traffic_that_goes_nowhere(configurations: dict[str, Object], status: str, reason: str):
    found = assign(route(LATEST, PREVIOUS), configurations, {})
    assert isinstance(found, Unassigned)
    assert (found.status, found.reason) == (status, reason)


def test_one_http_route_for_all_and_one_for_each_tag():
    targets = [Target("iris-00002", 20, "", True), Target("iris-00001", 80, "prev", False)]
    shared, tagged = http_routes(route(), targets, {"iris-00001": 60, "iris-00002": 300}, PARENT, 8080)
    assert shared["spec"]["hostnames"][-1] == "iris-ns.localhost"
    by_header, others = shared["spec"]["rules"]
    assert by_header["matches"][0]["headers"] == [{"name": "Knative-Serving-Tag", "value": "prev"}]
    assert {each["name"]: each["weight"] for each in others["backendRefs"]} == {"iris-00002": 20, "iris-00001": 80}
    assert others["timeouts"] == {"request": "300s"}
    assert tagged["metadata"]["name"] == "prev-iris"
    assert [each["name"] for each in tagged["spec"]["rules"][0]["backendRefs"]] == ["iris-00001"]
    assert Addresses.of(route(), 8080, "prev").url == "http://prev-iris-ns.localhost:8080"


def test_a_route_for_the_cluster_alone():
    local = route(**{"networking.knative.dev/visibility": "cluster-local"})
    assert Addresses.of(local, 8080).url == "http://iris.ns.svc.cluster.local"
    assert "iris-ns.localhost" not in Addresses.of(local, 8080).hosts()


def revision(container: Object | None = None, annotations: dict[str, str] | None = None) -> Object:
    template = {
        "metadata": {"annotations": annotations or {}, "labels": {"a": "b"}},
        "spec": {"containers": [container or {"name": "c", "image": "i"}], "containerConcurrency": 3},
    }
    labels = {"serving.knative.dev/service": "iris"}
    metadata = {"name": "iris", "namespace": "ns", "uid": "u", "generation": 7, "labels": labels}
    made = revision_of({"metadata": metadata, "spec": {"template": template}})
    made["metadata"]["uid"] = "r"
    return made


def test_a_revision_is_named_by_the_generation():
    made = revision()
    assert made["metadata"]["name"] == "iris-00007"
    assert made["spec"]["timeoutSeconds"] == 300
    assert made["metadata"]["labels"]["serving.knative.dev/configurationGeneration"] == "7"


def test_a_deployment_runs_the_pods_and_knows_when_they_are_ready():
    made = deployment_of(revision(), 2)
    assert made["metadata"]["name"] == "iris-00007-deployment"
    assert made["spec"]["replicas"] == 2
    pod = made["spec"]["template"]["spec"]
    assert "containerConcurrency" not in pod
    container = pod["containers"][0]
    assert container["readinessProbe"]["tcpSocket"] == {"port": 8080}
    assert {"name": "K_REVISION", "value": "iris-00007"} in container["env"]
    assert service_of(revision())["spec"]["ports"][0]["targetPort"] == 8080


def test_a_probe_without_a_port_asks_the_one_that_takes_requests():
    container = {"ports": [{"containerPort": 9000, "name": "h2c"}], "readinessProbe": {"httpGet": {"path": "/x"}}}
    probe = deployment_of(revision(container), 1)["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe["httpGet"] == {"path": "/x", "port": 9000}
    assert service_of(revision(container))["spec"]["ports"][0]["appProtocol"] == "kubernetes.io/h2c"


def test_requests_go_to_the_agent_where_there_is_one():
    logged = revision(annotations={"internal.serving.kserve.io/logger": "true"})
    assert service_of(logged)["spec"]["ports"][0]["targetPort"] == 9081


def test_a_revision_may_be_scaled_by_what_it_uses():
    by = {"metric": "memory", "target": "100", "max-scale": "4"}
    made = revision(annotations={f"autoscaling.knative.dev/{key}": value for key, value in by.items()})
    spec = hpa_of(made, Scaling.of(made, {}))["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 4)
    assert spec["metrics"][0]["resource"]["target"] == {"type": "AverageValue", "averageValue": "100Mi"}


def test_a_graph_is_reached_through_its_knative_service():
    graph: Object = {"metadata": {"name": "g", "namespace": "ns"}}
    knative_route: Object = {"metadata": {"labels": {ROUTE: "g"}}}
    ((made, hosts),) = graph_routes(graph, knative_route, None)
    assert hosts == ["localhost"]
    rule = made["spec"]["rules"][0]
    assert rule["filters"][0]["urlRewrite"]["hostname"] == "g.ns.svc.cluster.local"
    assert rule["backendRefs"][0]["name"] == "knative-local-gateway"


def test_a_graph_is_reached_through_its_router_once_that_is_there():
    graph: Object = {"metadata": {"name": "g", "namespace": "ns"}}
    assert graph_routes(graph, None, None) == []  # it may be one of Knative's
    routes = graph_routes(graph, None, {"metadata": {"name": "g"}})
    assert [hosts for _, hosts in routes] == [["g-ns.localhost"], ["localhost"]]
