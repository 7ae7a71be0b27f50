"""The order in which a StatefulSet's pods come, go and are replaced."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from isvc.local.controllers.pod_writes import BURST
from isvc.local.controllers.revisions import HASH
from isvc.local.controllers.stateful_sets import next_step

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def stateful_set(replicas=3, *, parallel=False, partition=0, strategy="RollingUpdate"):
    return {
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel" if parallel else "OrderedReady",
            "updateStrategy": {"type": strategy, "rollingUpdate": {"partition": partition}},
        },
    }


def pods(states, revisions="new"):
    """By ordinal: r for ready, u for not ready, f for failed, d for being deleted, - for none."""
    revisions = [revisions] * len(states) if isinstance(revisions, str) else revisions
    found = {}
    for number, (state, revision) in enumerate(zip(states, revisions, strict=True)):
        metadata = {"name": f"web-{number}", "labels": {HASH: revision}}
        if state == "d":
            metadata["deletionTimestamp"] = "2026-11-16T00:00:00Z"
        ready = {
            "type": "Ready",
            "status": "True" if state == "r" else "False",
            "lastTransitionTime": "2026-11-16T00:00:00Z",
        }
        status = {"phase": "Failed" if state == "f" else "Running", "conditions": [ready]}
        if state != "-":
            found[number] = {"metadata": metadata, "status": status}
    return found


def step(owner, found):
    taken = next_step(owner, found, "new", NOW)
    return list(taken.create), [pod["metadata"]["name"] for pod in taken.delete]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("---", ([0], [])),
        ("u--", ([], [])),
        ("r--", ([1], [])),
        ("r-r", ([1], [])),
        ("rf-", ([], ["web-1"])),
        ("rd-", ([], [])),
        ("rrr", ([], [])),
        ("rrrrr", ([], ["web-4"])),
        ("rurr", ([], [])),
        ("rrrd", ([], [])),
    ],
)
def test_one_after_the_other(states, expected):
    assert step(stateful_set(), pods(states)) == expected


@pytest.mark.parametrize(
    ("states", "expected"),
    [("---", ([0, 1, 2], [])), ("u-f", ([1], ["web-2"])), ("rrrrd", ([], ["web-3"])), ("uuu", ([], []))],
)
def test_all_at_once(states, expected):
    assert step(stateful_set(parallel=True), pods(states)) == expected


@pytest.mark.parametrize(
    ("revisions", "partition", "strategy", "expected"),
    [
        (["old", "old", "old"], 0, "RollingUpdate", ["web-2"]),
        (["old", "old", "new"], 0, "RollingUpdate", ["web-1"]),
        (["old", "old", "new"], 2, "RollingUpdate", []),
        (["old", "old", "old"], 0, "OnDelete", []),
    ],
)
def test_an_update_goes_from_the_last_to_the_first(revisions, partition, strategy, expected):
    owner = stateful_set(partition=partition, strategy=strategy)
    assert step(owner, pods("rrr", revisions)) == ([], expected)


def test_an_update_waits_for_the_pod_it_replaced():
    assert step(stateful_set(parallel=True), pods("rru", ["old", "old", "new"])) == ([], [])


def test_of_many_replicas_no_more_are_looked_for_than_are_made_at_a_time():
    created, deleted = step(stateful_set(20_000, parallel=True), pods("rf"))
    assert (created, deleted) == (list(range(2, BURST + 2)), ["web-1"])
