from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.local.controllers.deployments.proportion import is_resized, resize
from isvc.local.controllers.rollout import Limits, scale_annotations


def replica_set(name, replicas, before: Limits, *, available=0, created="2026-01-01T00:00:00Z"):
    return {
        "metadata": {"name": name, "creationTimestamp": created, "annotations": scale_annotations(before)},
        "spec": {"replicas": replicas},
        "status": {"availableReplicas": available},
    }


@pytest.mark.parametrize(
    ("before", "after", "old", "new", "expected"),
    [
        (Limits(10, 3, 2), Limits(15, 3, 2), 8, 5, {"old": 11, "new": 7}),  # the example in Kubernetes' documentation
        (Limits(2, 1, 0), Limits(10, 3, 2), 2, 1, {"old": 9, "new": 4}),
        (Limits(10, 3, 2), Limits(5, 2, 1), 8, 5, {"old": 4, "new": 3}),
        (Limits(10, 3, 2), Limits(0, 0, 0), 8, 5, {"old": 0, "new": 0}),
        (Limits(3, 1, 0), Limits(5, 2, 1), 3, 0, {"old": 5}),
    ],
)
def test_every_replica_set_keeps_its_share(before, after, old, new, expected):
    sets = [replica_set("old", old, before), replica_set("new", new, before, created="2026-01-02T00:00:00Z")]
    assert is_resized(after, sets)
    assert not is_resized(before, sets)
    assert resize(after, sets[1], sets) == expected


def test_a_new_version_that_is_up_gets_all():
    limits = Limits(3, 1, 0)
    sets = [replica_set("old", 1, limits), replica_set("new", 3, limits, available=3)]
    assert resize(limits, sets[1], sets) == {"old": 0, "new": 3}


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 10), st.lists(st.integers(0, 20), min_size=2, max_size=4))
def test_what_is_added_is_shared_out_in_full(before, after, surge, sizes):
    limits = Limits(after, surge, 0)
    sets = [replica_set(f"r{i}", size, Limits(before, surge, 0)) for i, size in enumerate(sizes)]
    result = resize(limits, None, sets)
    assert all(size >= 0 for size in result.values())
    if sum(size > 0 for size in sizes) > 1 and sum(sizes) <= limits.maximum and after:
        assert sum(result.values()) == limits.maximum
