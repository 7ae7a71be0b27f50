"""The tree of what belongs to a service, and how its objects are doing."""

from __future__ import annotations

import pytest

from isvc.dashboard.views.health import Health, health
from isvc.dashboard.views.tree import MOST_PODS, Node, object_path, tree
from isvc.insight.diagnosis.evidence import Evidence
from isvc.kube.objects import Key


def thing(kind: str, name: str, owner: str = "", labels: dict | None = None, **rest: object) -> dict:
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "team", "uid": name, "ownerReferences": owners, "labels": labels or {}}
    group = {"Deployment": "apps/v1", "ReplicaSet": "apps/v1", "HTTPRoute": "gateway.networking.k8s.io/v1"}
    return {"apiVersion": group.get(kind, "v1"), "kind": kind, "metadata": metadata, **rest}


def pod(name: str, owner: str, *, ready: bool, reason: str = "") -> dict:
    status: dict = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    if reason:
        status["containerStatuses"] = [{"name": "c", "state": {"waiting": {"reason": reason}}}]
    return thing("Pod", name, owner, {"component": "predictor"}, status=status)


SERVICE = thing("InferenceService", "iris")
PREDICTOR = {"component": "predictor"}
DEPLOYMENT = thing(
    "Deployment", "iris-predictor", "iris", PREDICTOR, spec={"replicas": 1}, status={"availableReplicas": 0}
)
REPLICAS = thing("ReplicaSet", "iris-1", "iris-predictor", PREDICTOR, spec={"replicas": 1}, status={})
EARLIER = thing("ReplicaSet", "iris-0", "iris-predictor", PREDICTOR, spec={"replicas": 0}, status={})
ROUTE = thing(
    "HTTPRoute",
    "iris",
    "iris",
    spec={
        "parentRefs": [{"name": "gateway", "namespace": "kserve"}],
        "rules": [{"backendRefs": [{"name": "iris-predictor", "weight": 90}, {"name": "iris-canary", "weight": 10}]}],
    },
    status={"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]},
)


def lines(nodes: tuple[Node, ...], depth: int = 0) -> list[str]:
    return [
        line
        for node in nodes
        for line in (f"{'  ' * depth}{node.kind} {node.name} {node.health}", *lines(node.children, depth + 1))
    ]


def test_from_component_to_the_pod_that_is_broken():
    broken = pod("iris-1-a", "iris-1", ready=False, reason="CrashLoopBackOff")
    found = tree(Evidence(SERVICE, owned=[DEPLOYMENT, REPLICAS, EARLIER, broken], pods=[broken]))
    assert lines(found) == [
        "group predictor broken",
        "  Deployment iris-predictor broken",
        "    ReplicaSet iris-1 broken",
        "      Pod iris-1-a broken",
    ]


def test_parts_of_an_llm_are_called_what_they_do():
    label = "app.kubernetes.io/component"
    names = {"main": "workload", "prefill": "workload-prefill", "epp": "router-scheduler"}
    parts = [
        {**DEPLOYMENT, "metadata": {**DEPLOYMENT["metadata"], "uid": name, "name": name, "labels": {label: value}}}
        for name, value in ((name, f"llminferenceservice-{part}") for name, part in names.items())
    ]
    assert [node.name for node in tree(Evidence(SERVICE, owned=parts))] == ["decode", "scheduler", "prefill"]
    assert [node.name for node in tree(Evidence(SERVICE, owned=parts[:1]))] == ["workload"]


def test_two_objects_of_one_kind_and_name_are_told_apart():
    pools = [
        {"apiVersion": version, "kind": "InferencePool", "metadata": {**ROUTE["metadata"], "uid": version}}
        for version in ("inference.networking.k8s.io/v1", "inference.networking.x-k8s.io/v1alpha2")
    ]
    nodes = tree(Evidence(SERVICE, owned=pools))[0].children
    assert [node.says for node in nodes] == ["v1.inference.networking.k8s.io", "v1alpha2.inference.networking.x-k8s.io"]


def test_routes_lead_to_gateways_and_backends():
    found = tree(Evidence(SERVICE, owned=[ROUTE], gateways={Key("kserve", "gateway"): None}))
    assert lines(found) == [
        "group traffic ready",
        "  HTTPRoute iris ready",
        "    Gateway kserve/gateway broken",
        "    Service iris-predictor present",
        "    Service iris-canary present",
    ]
    assert [node.says for node in found[0].children[0].children[1:]] == ["90 % of requests", "10 % of requests"]


def test_a_pod_without_a_known_owner_is_not_lost():
    stray = pod("worker-0", "a-set-that-is-not-read", ready=True)
    assert lines(tree(Evidence(SERVICE, pods=[stray]))) == ["group predictor ready", "  Pod worker-0 ready"]


def test_many_pods_are_counted_and_the_broken_one_is_shown():
    pods = [pod(f"p{number:03}", "iris-1", ready=number != 99) for number in range(100)]
    found = tree(Evidence(SERVICE, owned=[DEPLOYMENT, REPLICAS, *pods], pods=pods))
    shown = found[0].children[0].children[0].children
    assert len(shown) == MOST_PODS + 1
    assert (shown[0].name, shown[0].health) == ("p099", Health.WAITING)
    assert shown[-1].name == f"and {100 - MOST_PODS} more"


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (pod("a", "", ready=True), Health.READY),
        (pod("a", "", ready=False), Health.WAITING),
        (pod("a", "", ready=False, reason="ImagePullBackOff"), Health.BROKEN),
        (thing("Pod", "a", status={"phase": "Failed"}), Health.BROKEN),
        (thing("Pod", "a", status={"phase": "Succeeded"}), Health.READY),
        (thing("Deployment", "a", spec={"replicas": 0}), Health.READY),
        (DEPLOYMENT, Health.WAITING),
        (ROUTE, Health.READY),
        (thing("HTTPRoute", "a"), Health.WAITING),
        (thing("Service", "a"), Health.PRESENT),
        (thing("X", "a", status={"conditions": [{"type": "Accepted", "status": "False"}]}), Health.BROKEN),
        (thing("X", "a", status={"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]}), Health.READY),
    ],
)
def test_health(obj, expected):
    assert health(obj) is expected


def test_paths_name_kind_version_and_group():
    assert object_path(DEPLOYMENT) == "/objects/Deployment.v1.apps/team/iris-predictor"
    assert object_path(thing("Service", "a")) == "/objects/Service.v1/team/a"


@pytest.mark.parametrize("conditions", ["text", ["text"], {"a": "b"}])
def test_a_child_whose_conditions_are_none_is_there(conditions: object):
    """A server that has no schema for its kind stores anything."""
    child = thing("ScaledObject", "iris-predictor", "iris", PREDICTOR, status={"conditions": conditions})
    [group] = tree(Evidence(SERVICE, owned=[child]))
    assert [(node.kind, node.says, node.health) for node in group.children] == [("ScaledObject", "", Health.PRESENT)]
