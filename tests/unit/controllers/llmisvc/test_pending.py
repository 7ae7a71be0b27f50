"""How long a service waits after a change of a child depends on whether more of them are to come."""

from __future__ import annotations

import pytest
from tests.unit.controllers.llmisvc.services import service

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.pending import MORE_TO_COME, READS, TOGETHER, delay_by_children
from isvc.kube.objects import Key, Object
from isvc.kube.owners import controller_ref
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2, LEADER_WORKER_SETS
from isvc.toolkit.cache.memory import MemoryReader

AVAILABLE = {"conditions": [{"type": "Available", "status": "True"}]}
UNAVAILABLE = {"conditions": [{"type": "Available", "status": "False"}]}
ACCEPTED = {"parents": [{"conditions": [{"type": "Accepted", "status": "True"}]}]}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
NOT_YET: Object = {}

Reported = tuple[Resource, Object]


def delay_with(*children: Reported, status: Object | None = None) -> float:
    owner = service("llama", status=status or {})
    metadata = {"namespace": "models", "ownerReferences": [controller_ref(owner)]}
    made = [
        (resource, {"metadata": {**metadata, "name": f"child-{number}"}, "status": status})
        for number, (resource, status) in enumerate(children)
    ]
    reader = MemoryReader([(LLM_INFERENCE_SERVICES, owner), *made], reads=READS, absent={LEADER_WORKER_SETS})
    return delay_by_children(reader)(Key("models", "llama"))


@pytest.mark.parametrize(
    "children",
    [
        [(DEPLOYMENTS, AVAILABLE), (HTTP_ROUTES, NOT_YET)],
        [(DEPLOYMENTS, UNAVAILABLE), (HTTP_ROUTES, ACCEPTED)],
        [(DEPLOYMENTS, NOT_YET), (HTTP_ROUTES, ACCEPTED)],
        [(DEPLOYMENTS, AVAILABLE), (INFERENCE_POOLS, NOT_YET), (INFERENCE_POOLS_V1ALPHA2, NOT_YET)],
    ],
)
def test_a_service_waits_longer_while_a_child_has_yet_to_become_ready(children: list[Reported]) -> None:
    assert delay_with(*children) == MORE_TO_COME


@pytest.mark.parametrize("older", [NOT_YET, {"parent": ACCEPTED["parents"]}])
def test_it_waits_no_longer_when_all_have_reported(older: Object) -> None:
    pools = [(INFERENCE_POOLS, ACCEPTED), (INFERENCE_POOLS_V1ALPHA2, older)]
    assert delay_with((DEPLOYMENTS, AVAILABLE), (HTTP_ROUTES, ACCEPTED), *pools) == 0.0


def test_a_ready_service_tells_soon_that_a_child_is_not_any_more() -> None:
    assert delay_with((DEPLOYMENTS, UNAVAILABLE), status=READY) == TOGETHER


def test_changes_of_other_children_are_taken_together() -> None:
    assert delay_with() == TOGETHER
    assert delay_by_children(MemoryReader(reads=READS))(Key("models", "gone")) == TOGETHER


@pytest.mark.parametrize("status", ["Available", ["Available"], {"conditions": "Available", "parents": 1}])
@pytest.mark.parametrize("resource", [DEPLOYMENTS, HTTP_ROUTES, INFERENCE_POOLS])
def test_whatever_a_child_reports_the_service_is_reconciled(resource: Resource, status: Object) -> None:
    assert delay_with((resource, status), (DEPLOYMENTS, NOT_YET)) == MORE_TO_COME
