"""ClusterRoleBindings of schedulers, which no service can own: each is one service's, and goes with that one alone."""

from __future__ import annotations

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS
from isvc.programs.options import Options


def service(namespace: str, name: str) -> Object:
    return {
        "apiVersion": LLM_INFERENCE_SERVICES.api_version,
        "kind": LLM_INFERENCE_SERVICES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"model": {"uri": "pvc://claim/m"}, "router": {"scheduler": {}, "route": {}, "gateway": {}}},
    }


def bound(simulation: Simulation) -> dict[str, str]:
    """The namespace of its subject for each binding, by name."""
    return {name_of(each): each["subjects"][0]["namespace"] for each in simulation.objects.list(CLUSTER_ROLE_BINDINGS)}


async def test_services_that_would_share_a_name_have_a_binding_each_and_lose_only_their_own() -> None:
    cluster = Cluster(Options())
    cluster.install([], [])
    simulation = cluster.simulation
    for namespace, name in (("a-b", "c"), ("a", "b-c")):
        await simulation.apply(LLM_INFERENCE_SERVICES, service(namespace, name))
        await simulation.settle_ready()
    first, second = bound(simulation).items()
    assert first == ("a-b-c-epp-auth-rb", "a-b")
    assert (second[0] != first[0], second[1]) == (True, "a")
    await simulation.client.delete(LLM_INFERENCE_SERVICES, "b-c", "a")
    await simulation.settle_ready()
    assert bound(simulation) == dict([first])
    await simulation.apply(LLM_INFERENCE_SERVICES, service("a", "b-c"))
    await simulation.client.delete(LLM_INFERENCE_SERVICES, "c", "a-b")
    await simulation.settle_ready()
    assert list(bound(simulation).values()) == ["a"]


async def test_a_binding_of_somebody_else_is_left_alone() -> None:
    cluster = Cluster(Options())
    cluster.install([], [])
    simulation = cluster.simulation
    reader = {"kind": "ServiceAccount", "name": "reader", "namespace": "audit"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    theirs = CLUSTER_ROLE_BINDINGS.typed(
        {"metadata": {"name": "a-b-epp-auth-rb", "uid": "1"}, "subjects": [reader], "roleRef": role}
    )
    simulation.seed([(CLUSTER_ROLE_BINDINGS, theirs)])
    await simulation.apply(LLM_INFERENCE_SERVICES, service("a", "b"))
    await simulation.settle_ready()
    assert simulation.objects.get(CLUSTER_ROLE_BINDINGS, "a-b-epp-auth-rb") == theirs
    assert sorted(bound(simulation).values()) == ["a", "audit"]
    await simulation.client.delete(LLM_INFERENCE_SERVICES, "b", "a")
    await simulation.settle_ready()
    assert bound(simulation) == {"a-b-epp-auth-rb": "audit"}
