"""Pods of a Job are counted once, whenever the controller is interrupted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from isvc.local.controllers.jobs.tally import FINALIZER, INDEX, format_indexes, parse_indexes, tally


def job(**spec):
    return {"metadata": {"name": "j"}, "spec": {"completions": 3, **spec}, "status": {}}


def pod(uid, phase, *, held=True, index=None, code=1):
    exit_code = {"name": "main", "state": {"terminated": {"exitCode": code}}}
    return {
        "metadata": {
            "uid": uid,
            "name": uid,
            "finalizers": [FINALIZER] if held else [],
            "annotations": {} if index is None else {INDEX: str(index)},
        },
        "status": {"phase": phase, "containerStatuses": [exit_code]},
    }


def test_a_pod_becomes_a_number_when_its_finalizer_is_gone():
    work = job()
    first = tally(work, [pod("a", "Succeeded"), pod("b", "Running")])
    assert (first.succeeded, first.all_succeeded, first.is_settled) == (0, 1, False)
    work["status"] = first.to_status()
    again = tally(work, [pod("a", "Succeeded")])
    assert (again.succeeded, again.all_succeeded) == (0, 1)
    after = tally(work, [pod("a", "Succeeded", held=False)])
    assert (after.succeeded, after.all_succeeded, after.is_settled) == (1, 1, True)
    work["status"] = after.to_status()
    assert tally(work, []).all_succeeded == 1


def test_an_index_counts_once_however_often_it_succeeds():
    pods = [pod("a", "Succeeded", index=1), pod("b", "Succeeded", index=1), pod("c", "Succeeded", index=7)]
    counts = tally(job(completionMode="Indexed"), pods)
    assert (set(counts.completed), counts.all_succeeded) == ({1}, 1)
    assert counts.to_status()["completedIndexes"] == "1"


def test_an_ignored_failure_is_not_counted_but_released():
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}
    work = job(podFailurePolicy={"rules": [rule]}, podReplacementPolicy="Failed")
    counts = tally(work, [pod("a", "Failed", code=42), pod("b", "Failed", code=1)])
    assert counts.all_failed == 1
    assert {each["metadata"]["uid"] for each in counts.ended} == {"a", "b"}


def test_indexes_as_text():
    assert format_indexes({0, 2, 3, 4, 7, 8}) == "0,2-4,7,8"
    assert parse_indexes("0,2-4,7,8") == {0, 2, 3, 4, 7, 8}


@given(st.sets(st.integers(min_value=0, max_value=60)))
def test_text_keeps_all_indexes(indexes):
    assert parse_indexes(format_indexes(indexes)) == indexes
