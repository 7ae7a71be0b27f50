"""Routing groups: who shares the traffic, who does not, and that members do not come and go with their routes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.controllers.llmisvc.services import observe, path, route, service

from isvc.controllers.llmisvc.observed import Network, Observed
from isvc.controllers.llmisvc.router.group import Group, group_of, share_traffic, traffic_changed
from isvc.kube.objects import Object

SPEC = {"model": {"name": "shared"}, "router": {"route": {"group": "g", "weight": 10}}}
READY = [{"type": "RouterReady", "status": "True"}]
WAITING = [
    {"type": "RouterReady", "status": "False"},
    {"type": "HTTPRoutesReady", "status": "False"},
]


def member(name: str, weight: int = 1, *, replicas: int = 1, conditions: list[Object] = READY, **more: Any) -> Object:
    spec = {"model": {"name": more.pop("model", "shared")}, "router": {"route": {"group": "g", "weight": weight}}}
    status = {"conditions": conditions, "workloads": {"primary": {"readyReplicas": replicas}}, **more.pop("status", {})}
    return service(name, spec, status=status, **more)


def among(*others: Object, admitted: tuple[str, ...] = ()) -> Observed:
    status = {"router": {"group": {"members": [{"name": name} for name in admitted]}}}
    raw = service(spec=SPEC, status=status)
    observed = observe(SPEC, raw=raw)
    return replace(observed, network=Network(members=[raw, *others]))


def names(group: Group | None) -> list[str]:
    assert group is not None
    return [each.name for each in group.members]


def test_a_service_is_always_a_member_of_its_own_group_and_others_join_when_they_can_answer() -> None:
    down, unready = member("down", replicas=0), member("unready", conditions=WAITING)
    assert names(group_of(among(member("a"), down, unready))) == ["a", "llama"]


def test_a_member_whose_route_waits_to_be_accepted_again_stays() -> None:
    assert names(group_of(among(member("a", conditions=WAITING), admitted=("a",)))) == ["a", "llama"]


def test_a_member_whose_pool_fails_leaves() -> None:
    failing = [*WAITING, {"type": "InferencePoolReady", "status": "False"}]
    assert names(group_of(among(member("a", conditions=failing), admitted=("a",)))) == ["llama"]


def test_a_member_without_pods_or_on_its_way_out_leaves() -> None:
    gone = member("gone", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    assert names(group_of(among(member("a", replicas=0), gone, admitted=("a", "gone")))) == ["llama"]


def test_a_stopped_member_shows_and_gets_no_traffic() -> None:
    stopped = member("a", metadata={"annotations": {"serving.kserve.io/stop": "true"}})
    stopped["spec"]["router"]["scheduler"] = {}  # of which nothing runs
    observed = among(stopped)
    group = group_of(observed)
    assert group is not None
    assert group.report()["members"][0] == {
        "name": "a",
        "weight": 1,
        "stopped": True,
        "backendRef": {"kind": "Service", "name": "a-kserve-workload-svc", "port": 8000},
    }
    assert backends(observed, path("/publishers/x", own())) == [("llama-kserve-workload-svc", 10)]


def test_a_member_that_serves_other_models_gets_no_traffic_and_is_named() -> None:
    group = group_of(among(member("a", model="other")))
    assert names(group) == ["llama"]
    assert group is not None
    assert group.divergence() == "group has members with different model sets: other"


def test_addresses_name_a_model_twice_and_that_is_no_other_model() -> None:
    models = [{"name": "publishers/models/models/shared"}, {"name": "shared"}]
    assert names(group_of(among(member("a", status={"addresses": [{"url": "u", "models": models}]})))) == ["a", "llama"]


def test_a_pool_of_the_users_is_referred_to_where_it_exists() -> None:
    raw = member("a")
    raw["spec"]["router"]["scheduler"] = {"pool": {"ref": {"name": "theirs"}}}
    group = group_of(among(raw))
    assert group is not None
    assert group.members[0].backend["group"] == "inference.networking.k8s.io"


def own() -> Object:
    return {"kind": "Service", "name": "llama-kserve-workload-svc", "port": 8000}


def backends(observed: Observed, rule: Object) -> list[tuple[str, int]]:
    group = group_of(observed)
    assert group is not None
    shared = share_traffic(route(rule)["spec"], group, observed)
    return [(backend["name"], backend.get("weight")) for backend in shared["rules"][0]["backendRefs"]]


@pytest.mark.parametrize(
    ("rule", "shared"),
    [
        (path("/publishers/models/models/shared", own()), True),
        (path("/models/llama-2", own()), True),
        (path("/models/llama", own()), False),
        (path("/models/llama/v1", own()), False),
        (path("/mine", {"name": "my-service"}), False),
        (path("/pool", {"kind": "InferencePool", "name": "llama-inference-pool"}), True),
    ],
)
def test_rules_for_the_model_are_shared_and_the_services_own_path_is_not(rule: Object, shared: bool) -> None:
    found = backends(among(member("a", 3)), rule)
    assert found == [("a-kserve-workload-svc", 3), ("llama-kserve-workload-svc", 10)] or not shared
    assert (len(found) == 2) is shared


def test_only_what_others_routes_depend_on_concerns_them() -> None:
    before = member("a")
    assert not traffic_changed(before, {**before, "metadata": {**before["metadata"], "generation": 2}})
    assert not traffic_changed(before, member("a", replicas=5))
    assert traffic_changed(before, member("a", replicas=0))
    assert traffic_changed(before, member("a", 7))
    assert traffic_changed(before, member("a", conditions=WAITING))
    assert traffic_changed(before, member("a", metadata={"annotations": {"serving.kserve.io/stop": "true"}}))
