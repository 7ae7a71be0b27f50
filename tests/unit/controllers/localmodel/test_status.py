"""What a cache says of its nodes, and when a refusal of its volumes is worth an event."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from isvc.api.localmodel import LocalModelCacheSpec, LocalModelNodeGroupSpec
from isvc.controllers.localmodel.node_groups import Group
from isvc.controllers.localmodel.observe import Observed
from isvc.controllers.localmodel.status import NAMESPACES_APPEAR, fold
from isvc.engine.outcome import Outcome, Refusal, Rejected
from isvc.engine.plan import ChildKey, Plan, Stop
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS
from isvc.serving.config.sections import LocalModelConfig

CREATED = "2026-11-17T10:00:00Z"
CLAIM = ChildKey(PERSISTENT_VOLUME_CLAIMS, "iris-disks", "team")
REFUSED = Refusal("volume iris-disks-team", CLAIM, Rejected(NotFound('namespaces "team" not found')))


def observed(now: str = CREATED, nodes: dict[str, bool] | None = None, **given: object) -> Observed:
    status: Object = given.pop("status", {})  # type: ignore[assignment]
    facts: Object = {
        "spec": LocalModelCacheSpec(),
        "config": LocalModelConfig(),
        "groups": {"disks": Group(LocalModelNodeGroupSpec(), nodes or {})},
        "lists": frozenset(),
        "entered": frozenset(),
        "states": {},
        "services": (),
        "llm_services": (),
        "volumes": {},
        "claims": {},
    }
    raw = {"metadata": {"name": "iris", "creationTimestamp": CREATED}, "status": status}
    return Observed(raw, **(facts | given), now=now)


@pytest.mark.parametrize(("seconds", "reasons"), [(0.0, []), (0.001, ["ReconcileFailed"])])
def test_a_refusal_is_reported_once_namespaces_had_time_to_appear(seconds: float, reasons: list[str]):
    later = datetime.fromisoformat(CREATED) + timedelta(seconds=NAMESPACES_APPEAR + seconds)
    folded = fold(observed(later.isoformat()), Plan(()), Outcome(refusal=REFUSED))
    assert [event.reason for event in folded.events] == reasons


def test_every_state_of_a_node_is_said_and_copies_are_counted():
    states = {"n1": "ModelDownloaded", "n2": "ModelDownloadError", "n3": "ModelDownloading"}
    nodes = dict.fromkeys(("n1", "n2", "n3", "n4"), True)
    status = fold(observed(nodes=nodes, states=states), Plan(()), Outcome()).status
    assert status["nodeStatus"] == {
        "n1": "NodeDownloaded",
        "n2": "NodeDownloadError",
        "n3": "NodeDownloading",
        "n4": "NodeDownloadPending",
    }
    assert status["copies"] == {"total": 4, "available": 1, "failed": 1}


def test_of_a_node_that_is_not_ready_the_last_that_is_known_is_kept():
    before = {"nodeStatus": {"n1": "NodeDownloaded"}}
    status = fold(observed(nodes={"n1": False, "n2": False}, status=before), Plan(()), Outcome()).status
    assert status["nodeStatus"] == {"n1": "NodeDownloaded", "n2": "NodeNotReady"}


def test_while_groups_are_unknown_nodes_whose_lists_have_the_model_are_kept():
    stop = Stop("groups of nodes", "", "NodeGroupNotFound", "LocalModelNodeGroup disks does not exist", "create it")
    states = {"n1": "ModelDownloaded"}
    folded = fold(observed(entered=frozenset({"n1"}), states=states), Plan((), stop), Outcome())
    assert folded.status["nodeStatus"] == {"n1": "NodeDownloaded"}
    assert [event.reason for event in folded.events] == ["NodeGroupNotFound"]
