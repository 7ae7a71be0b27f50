"""The life of a canary, by what Knative reports step by step."""

from isvc.controllers.inferenceservice.status.revisions import component_status
from isvc.kube.objects import Object


def report(created, ready, *traffic):
    targets = [
        {"revisionName": name, "percent": percent, "latestRevision": latest} for name, percent, latest in traffic
    ]
    return {"latestCreatedRevisionName": created, "latestReadyRevisionName": ready, "traffic": targets}


def played(*reports):
    status: Object = {}
    for step in reports:
        status = component_status(status, step, ready=True)
    return status.get("latestRolledoutRevision"), status.get("previousRolledoutRevision")


FIRST = report("r1", "r1", ("r1", 100, True))


def test_the_first_revision_is_rolled_out_at_once():
    assert played(FIRST) == ("r1", None)


def test_a_canary_leaves_the_rolled_out_revision_alone_until_it_has_everything():
    canary = report("r2", "r2", ("r2", 10, True), ("r1", 90, False))
    assert played(FIRST, canary) == ("r1", None)
    assert played(FIRST, canary, report("r2", "r2", ("r2", 100, True))) == ("r2", "r1")


def test_cutting_a_full_rollout_back_returns_to_the_one_before():
    full = report("r2", "r2", ("r2", 100, True))
    split_over_itself = report("r2", "r2", ("r2", 0, True), ("r2", 100, False))
    assert played(FIRST, full, split_over_itself) == ("r1", "r1")


def test_an_unready_revision_changes_nothing_but_its_name():
    status = component_status({}, FIRST, ready=True)
    status = component_status(status, report("r2", "r1", ("r1", 100, True)), ready=False)
    assert status["latestCreatedRevision"] == "r2"
    assert status["latestReadyRevision"] == "r1"
    assert status["latestRolledoutRevision"] == "r1"


def test_addresses_are_kept_while_the_component_is_not_ready():
    ready = component_status({}, {**FIRST, "url": "http://a", "address": {"url": "http://b"}}, ready=True)
    later = component_status(ready, {**FIRST, "url": "http://c"}, ready=False)
    assert (later["url"], later["address"]) == ("http://a", {"url": "http://b"})
