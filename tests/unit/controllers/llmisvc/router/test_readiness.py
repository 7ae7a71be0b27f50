"""What keeps routes and pools from being ready, and to which kind of pool a route leads."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.controllers.llmisvc.services import GATEWAY, NAMESPACE, path, route

from isvc.controllers.llmisvc.router.pools import pool_problem
from isvc.controllers.llmisvc.router.readiness import route_problem
from isvc.controllers.llmisvc.router.route import MIGRATION, is_migrated
from isvc.kube.objects import Key, Object
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

PARENT = {"name": GATEWAY.name, "namespace": GATEWAY.namespace}
OLD = {"kind": "InferencePool", "name": "p", "group": INFERENCE_POOLS_V1ALPHA2.group}
NEW = {**OLD, "group": INFERENCE_POOLS.group}


def condition(kind: str, status: str = "True", reason: str = "Fine", generation: int = 0) -> Object:
    found: Object = {"type": kind, "status": status, "reason": reason, "message": "why"}
    return {**found, "observedGeneration": generation} if generation else found


def answered(*conditions: Object, of: Object | None = None, parent: Object = PARENT) -> Object:
    found = of or route(path("/m"))
    parents = [*found.get("status", {}).get("parents", []), {"parentRef": parent, "conditions": list(conditions)}]
    return {**found, "status": {"parents": parents}}


READY = (condition("Accepted"), condition("ResolvedRefs"))


def test_a_route_is_ready_when_every_gateway_accepted_it_and_found_its_backends() -> None:
    assert route_problem(answered(*READY)) is None


def test_a_route_that_nobody_answered_names_the_gateway_and_what_to_look_at() -> None:
    problem = route_problem(route(path("/m"))) or ""
    assert "models/llama-kserve-route" in problem
    assert "Gateway kserve/gate" in problem
    assert "controller of the gateway's class" in problem


def test_an_answer_of_a_policy_controller_is_none() -> None:
    assert "no controller has accepted" in (route_problem(answered(condition("Attached"))) or "")


@pytest.mark.parametrize(
    ("conditions", "problem"),
    [
        ((condition("Accepted", "False", "No"), READY[1]), '"False" (reason "No", message "why")'),
        ((READY[0], condition("ResolvedRefs", "False", "BackendNotFound")), '(reason "BackendNotFound"'),
        ((READY[0],), '"Unknown" (reason "ConditionMissing"'),
        ((condition("Accepted", generation=1), READY[1]), '"True" (reason "Fine"'),
    ],
)
def test_the_first_condition_that_is_not_met_speaks(conditions: tuple[Object, ...], problem: str) -> None:
    found = answered(*conditions)
    found["metadata"]["generation"] = 2
    assert problem in (route_problem(found) or "")


def test_gateways_of_other_listeners_answer_for_themselves() -> None:
    found = route(path("/m"), parentRefs=[{**PARENT, "sectionName": "web"}])
    assert "listener web" in (route_problem(answered(*READY, of=found)) or "")
    assert route_problem(answered(*READY, of=found, parent={**PARENT, "sectionName": "web"})) is None


def pool(resource: Any = INFERENCE_POOLS, *parents: Object) -> Object:
    return {
        "apiVersion": resource.api_version,
        "metadata": {"name": "p", "namespace": NAMESPACE, "generation": 2},
        "status": {"parent" if resource is INFERENCE_POOLS_V1ALPHA2 else "parents": list(parents)},
    }


def accepted(status: str = "True", parent: Object = PARENT, **more: Any) -> Object:
    return {"parentRef": parent, "conditions": [condition("Accepted", status, **more)]}


@pytest.mark.parametrize("resource", [INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2])
def test_a_pool_is_ready_when_the_gateways_in_use_accepted_it_whatever_others_said(resource: Any) -> None:
    others = accepted("False", {"name": "former"})
    assert pool_problem(pool(resource, accepted(), others), [GATEWAY]) is None


@pytest.mark.parametrize(
    ("parents", "problem"),
    [
        ((), ("WaitingForGateway", "exists but no Gateway controller has accepted it yet")),
        ((accepted(parent={"name": "former"}),), ("WaitingForGateway", "no Gateway controller")),
        ((accepted(),), ("WaitingForGateway", "is not yet accepted by gateway models/second")),
        ((accepted(), accepted("False", {"name": "second"})), ("InferencePoolNotReady", 'Accepted="False"')),
        ((accepted(), accepted(parent={"name": "second"}, generation=1)), ("InferencePoolNotReady", 'Accepted="True"')),
        (({"parentRef": PARENT}, {"parentRef": {"name": "second"}}), ("InferencePoolNotReady", "is not ready")),
    ],
)
def test_what_keeps_a_pool_from_being_ready(parents: tuple[Object, ...], problem: tuple[str, str]) -> None:
    reason, message = pool_problem(pool(INFERENCE_POOLS, *parents), [GATEWAY, Key(NAMESPACE, "second")]) or ("", "")
    assert reason == problem[0]
    assert problem[1] in message


@pytest.mark.parametrize(
    ("found", "moved"),
    [
        (None, False),
        (route(path("/m", OLD)), False),
        (answered(*READY, of=route(path("/m", OLD))), False),
        (answered(condition("ResolvedRefs", "False", "InvalidKind"), of=route(path("/m", OLD))), True),
        (answered(condition("ResolvedRefs", "False", "BackendNotFound"), of=route(path("/m", OLD))), False),
        (answered(*READY, of=route(path("/m", NEW))), True),
        (answered(condition("ResolvedRefs", "False", "InvalidKind"), of=route(path("/m", NEW))), False),
        (answered(*READY, of=route(path("/m", NEW)), parent={"name": "another"}), False),
    ],
)
def test_a_route_moves_to_the_newer_pools_when_its_gateway_refuses_the_older_or_took_the_newer(
    found: Object | None, moved: bool
) -> None:
    assert is_migrated(found) is moved


def test_a_route_that_moved_stays_there() -> None:
    found = route(path("/m", OLD))
    found["metadata"]["annotations"] = {MIGRATION: "v1"}
    assert is_migrated(found)


def test_one_gateway_that_knows_the_older_pools_is_enough_to_stay() -> None:
    second = {"name": "second"}
    both = route(path("/m", OLD), parentRefs=[PARENT, second])
    refused = answered(condition("ResolvedRefs", "False", "InvalidKind"), of=both)
    assert not is_migrated(answered(*READY, of=refused, parent=second))
