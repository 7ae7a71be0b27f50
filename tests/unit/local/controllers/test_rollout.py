from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.local.controllers.rollout import (
    HASH_LABEL,
    Limits,
    bare_template,
    find_new,
    new_replica_set,
    new_size,
    old_sizes,
    revision_of,
    share,
    template_hash,
)

SIZES = st.one_of(st.integers(0, 5), st.integers(0, 100).map(lambda n: f"{n}%"))


def deployment(replicas=1, surge="25%", unavailable="25%", image="a"):
    return {
        "metadata": {
            "name": "d",
            "namespace": "ns",
            "annotations": {"note": "kept", "kubectl.kubernetes.io/last-applied-configuration": "x"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "d"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": image}]}},
        },
    }


def replica_set(name, replicas, available, created="2026-01-01T00:00:00Z"):
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"replicas": replicas},
        "status": {"availableReplicas": available},
    }


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [("25%", 1, 1, 0), ("25%", 4, 1, 1), ("50%", 3, 2, 1), (2, 10, 2, 2), ("0%", 5, 0, 0)],
)
def test_shares_round_up_for_surge_and_down_for_unavailable(value, total, up, down):
    assert share(value, total, up=True) == up
    assert share(value, total, up=False) == down


def test_one_replica_is_replaced_before_it_goes():
    limits = Limits.of(deployment(1))
    assert (limits.maximum, limits.minimum) == (2, 1)


@given(replicas=st.integers(1, 12), surge=SIZES, unavailable=SIZES, order=st.randoms(use_true_random=False))
def test_a_rolling_update_ends_and_never_leaves_its_bounds(replicas, surge, unavailable, order):
    """Pods become available one by one, in any order with the controller's steps."""
    limits = Limits.of(deployment(replicas, surge, unavailable))
    new, old = replica_set("new", 0, 0), replica_set("old", replicas, replicas)
    for _ in range(40 * replicas):
        new["spec"]["replicas"] = new_size(limits, new, [old])
        for size in old_sizes(limits, new, [old]).values():
            old["spec"]["replicas"] = size
            old["status"]["availableReplicas"] = min(old["status"]["availableReplicas"], size)
        assert new["spec"]["replicas"] + old["spec"]["replicas"] <= limits.maximum
        assert new["status"]["availableReplicas"] + old["status"]["availableReplicas"] >= limits.minimum
        if new["status"]["availableReplicas"] == replicas and old["spec"]["replicas"] == 0:
            return
        if new["status"]["availableReplicas"] < new["spec"]["replicas"] and order.random() < 0.5:
            new["status"]["availableReplicas"] += 1
    raise AssertionError("the rollout did not end")


def test_pods_that_serve_nobody_go_first():
    limits = Limits(replicas=4, surge=1, unavailable=1)
    broken, fine = replica_set("broken", 2, 0, "2026-02-01T00:00:00Z"), replica_set("fine", 2, 2)
    assert old_sizes(limits, replica_set("new", 1, 1), [fine, broken]) == {"broken": 0}


def test_a_template_is_found_again_whatever_its_hash():
    first, second = deployment(image="a"), deployment(image="b")
    limits = Limits.of(first)
    old = new_replica_set(first, limits, 1, {"uid": "u"})
    new = new_replica_set(second, limits, 2, {"uid": "u"})
    assert find_new(first, [old, new]) is old
    assert find_new(second, [old, new]) is new
    assert find_new(deployment(image="c"), [old, new]) is None
    assert bare_template(old) == first["spec"]["template"]


def test_a_new_replica_set():
    made = new_replica_set(deployment(4), Limits.of(deployment(4)), 7, {"uid": "u"})
    value = template_hash(deployment()["spec"]["template"])
    assert made["metadata"]["name"] == f"d-{value}"
    assert made["spec"]["selector"]["matchLabels"] == {"app": "d", HASH_LABEL: value}
    assert made["spec"]["template"]["metadata"]["labels"] == {"app": "d", HASH_LABEL: value}
    assert revision_of(made) == 7
    assert made["metadata"]["annotations"] == {
        "note": "kept",
        "deployment.kubernetes.io/revision": "7",
        "deployment.kubernetes.io/desired-replicas": "4",
        "deployment.kubernetes.io/max-replicas": "5",
    }
