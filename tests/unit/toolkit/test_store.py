from __future__ import annotations

import pytest

from isvc.kube.objects import Key
from isvc.toolkit.store import KEPT_DECODED, OWNER, Decoded, Store


def config_map(name: str, *, namespace: str = "ns", colour: str = "red", owner: str = "") -> dict:
    metadata: dict = {"name": name, "namespace": namespace, "labels": {"colour": colour}}
    if owner:
        metadata["ownerReferences"] = [{"uid": "other"}, {"uid": owner, "controller": True}]
    return {"kind": "ConfigMap", "metadata": metadata}


def colour_of(obj: dict) -> list[str]:
    return [obj["metadata"]["labels"]["colour"]]


def put(store: Store, obj: dict, version: int = 1) -> None:
    store.put(Key.of(obj), obj, version)


@pytest.fixture
def store() -> Store:
    return Store({"colour": colour_of})


def names(objects: list[dict]) -> list[str]:
    return [obj["metadata"]["name"] for obj in objects]


def test_reads_by_key_namespace_and_altogether(store):
    put(store, config_map("a"))
    put(store, config_map("b", namespace="other"))
    assert store.get(Key("ns", "a")) == config_map("a")
    assert store.get(Key("other", "a")) is None
    assert names(store.list("other")) == ["b"]
    assert names(store.list()) == ["a", "b"]
    assert len(store) == 2
    assert set(store) == {Key("ns", "a"), Key("other", "b")}
    assert store.all_keys() == [Key("ns", "a"), Key("other", "b")]
    assert store.all_keys("other") == [Key("other", "b")]


def test_an_index_follows_updates_and_removals(store):
    put(store, config_map("b"))
    put(store, config_map("a"))
    assert names(store.by_index("colour", "red")) == ["a", "b"]
    put(store, config_map("a", colour="blue"), 2)
    assert names(store.by_index("colour", "red")) == ["b"]
    assert names(store.by_index("colour", "blue")) == ["a"]
    store.remove(Key("ns", "a"))
    assert store.by_index("colour", "blue") == []


def test_an_indexer_may_name_a_value_twice():
    store = Store({"colour": lambda obj: colour_of(obj) * 2})
    put(store, config_map("a"))
    put(store, config_map("a", colour="blue"), 2)
    assert (store.by_index("colour", "red"), names(store.by_index("colour", "blue"))) == ([], ["a"])
    store.remove(Key("ns", "a"))
    assert store.by_index("colour", "blue") == []


def test_what_an_indexer_fails_on_is_there_and_found_by_others(caplog: pytest.LogCaptureFixture):
    store = Store({"colour": colour_of, "kind": lambda obj: [obj["kind"]]})
    put(store, {"kind": "ConfigMap", "metadata": {"name": "a", "namespace": "ns", "labels": "none"}})
    put(store, config_map("b"))
    assert store.all_keys() == store.keys("kind", "ConfigMap") == [Key("ns", "a"), Key("ns", "b")]
    assert store.keys("colour", "red") == [Key("ns", "b")]
    (line,) = caplog.messages
    assert line.startswith("ns/a is not found by colour: TypeError")
    store.remove(Key("ns", "a"))
    assert store.keys("kind", "ConfigMap") == [Key("ns", "b")]


def test_children_are_found_by_the_owner_that_controls_them(store):
    put(store, config_map("a", owner="uid-1"))
    assert names(store.by_index(OWNER, "uid-1")) == ["a"]
    assert store.by_index(OWNER, "other") == []


def test_an_index_that_was_not_declared_is_an_error(store):
    with pytest.raises(KeyError, match="no index 'size'; declared: colour, owner"):
        store.by_index("size", "xl")


def test_objects_that_were_not_read_lately_are_decoded_anew_and_equal(store):
    for number in range(KEPT_DECODED + 5):
        put(store, config_map(f"c{number}"))
    first = store.get(Key("ns", "c0"))
    assert first == config_map("c0")
    assert store.get(Key("ns", "c0")) is first


def test_stores_that_share_what_is_decoded_keep_their_objects_apart_and_together_few():
    shared = Decoded()
    one, other = Store(decoded=shared), Store(decoded=shared)
    put(one, config_map("a", colour="red"))
    put(other, config_map("a", colour="blue"))
    assert (one.get(Key("ns", "a")), other.get(Key("ns", "a"))) == (config_map("a"), config_map("a", colour="blue"))
    kept = one.get(Key("ns", "a"))
    for number in range(KEPT_DECODED):
        put(other, config_map(f"c{number}"))
    assert one.get(Key("ns", "a")) is not kept
    other.remove(Key("ns", "a"))
    assert (one.get(Key("ns", "a")), other.get(Key("ns", "a"))) == (config_map("a"), None)


def test_removing_what_is_not_there_is_harmless(store):
    store.remove(Key("ns", "nobody"))
    assert store.version(Key("ns", "nobody")) == -1
