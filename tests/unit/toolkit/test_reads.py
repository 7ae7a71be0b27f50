"""Declarations are merged or refused; the order in which they come decides nothing."""

from itertools import permutations

import pytest

from isvc.kube.resource import CONFIG_MAPS, PODS
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.reads import ConflictingReads, Declaration, Read, merge


def merged(*reads):
    """What the reads come to, which is the same in any order."""
    found = [merge([Declaration(f"part {n}", read) for n, read in enumerate(order)]) for order in permutations(reads)]
    results = [sorted(result, key=repr) for result in found]
    assert all(result == results[0] for result in results)
    return results[0]


def by_name(obj):
    return [obj["metadata"]["name"]]


def by_node(obj):
    return [obj["spec"]["nodeName"]]


def small(obj):
    return obj


def test_a_wider_selection_serves_narrower_ones():
    wide, labelled, here = Read(PODS), Read(PODS, labels="a"), Read(PODS, namespace="n")
    both = Read(PODS, namespace="n", labels="a")
    assert merged(wide, labelled, here) == [wide]
    assert merged(labelled, both) == [labelled]
    assert merged(here, both) == [here]


def test_selections_that_do_not_include_each_other_are_watched_side_by_side():
    labelled, one = Read(CONFIG_MAPS, labels="a"), Read(CONFIG_MAPS, namespace="n", fields="metadata.name=one")
    assert merged(labelled, one) == sorted([labelled, one], key=repr)


def test_what_somebody_needs_is_not_optional():
    assert merged(Read(PODS), Read(PODS, optional=True)) == [Read(PODS)]
    assert merged(Read(PODS, optional=True, labels="a"), Read(PODS)) == [Read(PODS)]
    assert merged(Read(PODS, optional=True), Read(PODS, optional=True)) == [Read(PODS, optional=True)]


def test_every_index_is_kept():
    name, node = Read(PODS, indexers={"name": by_name}), Read(PODS, labels="a", indexers={"node": by_node})
    (result,) = merged(name, node)
    assert result.indexers == {"name": by_name, "node": by_node}


@pytest.mark.parametrize(
    ("one", "other", "message"),
    [
        (Read(PODS, indexers={"x": by_name}), Read(PODS, indexers={"x": by_node}), "index 'x'"),
    ],
)
def test_reads_that_cannot_be_served_together_are_refused_by_name(one, other, message):
    cache = Cache(Client.connect(ClusterConfig("https://nowhere")))
    cache.declare("node", one)
    with pytest.raises(ConflictingReads, match=message) as refused:
        cache.declare("webhooks", other)
    assert all(word in str(refused.value) for word in ("pods", "node", "webhooks"))


def test_objects_are_reduced_where_all_reduce_them_alike():
    assert merged(Read(PODS, labels="a", transform=small), Read(PODS, transform=small)) == [Read(PODS, transform=small)]
    assert merged(Read(PODS, labels="a", transform=small), Read(PODS)) == [Read(PODS)]
    (one, other) = merged(Read(PODS, labels="a", transform=small), Read(PODS, labels="b", transform=by_name))
    assert one.transform is other.transform is None


def test_what_nobody_declared_cannot_be_read():
    cache = Cache(Client.connect(ClusterConfig("https://nowhere")))
    with pytest.raises(KeyError, match="no part of the program has declared to read pods"):
        cache.get(PODS, "p", "n")


def test_a_read_that_is_declared_after_the_first_use_is_refused():
    cache = Cache(Client.connect(ClusterConfig("https://nowhere")))
    cache.declare("node", Read(PODS, labels="a"))
    assert cache.list(PODS) == []
    with pytest.raises(ConflictingReads, match="webhooks declares a read of pods too late"):
        cache.declare("webhooks", Read(PODS))
