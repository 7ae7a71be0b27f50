"""Objects in memory are read as the cache reads them."""

import pytest

from isvc.kube.objects import Key
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, PODS
from isvc.toolkit.cache import OWNER, Reader
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.reads import Read


def config(name, namespace="here", owner="", **data):
    references = [{"controller": True, "uid": owner}] if owner else []
    return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": references}, "data": data}


def by_colour(obj):
    return [obj["data"]["colour"]] if "colour" in obj["data"] else []


@pytest.fixture
def memory() -> Reader:
    objects = [
        (CONFIG_MAPS, config("b", colour="red")),
        (CONFIG_MAPS, config("a", owner="o", colour="red")),
        (CONFIG_MAPS, config("a", "there", owner="o")),
        (NAMESPACES, {"metadata": {"name": "here"}}),
    ]
    return MemoryReader(objects, reads=[Read(CONFIG_MAPS, indexers={"colour": by_colour})], absent={PODS})


def test_objects_are_found_by_name_and_namespace(memory):
    assert memory.get(CONFIG_MAPS, "a", "there") == config("a", "there", owner="o")
    assert memory.get(CONFIG_MAPS, "b", "there") is None
    assert memory.get(NAMESPACES, "here", "ignored") == {"metadata": {"name": "here"}}
    assert len(memory.list(CONFIG_MAPS)) == 3
    assert [Key.of(obj).name for obj in memory.list(CONFIG_MAPS, "there")] == ["a"]
    assert memory.all_keys(CONFIG_MAPS) == [Key("here", "a"), Key("here", "b"), Key("there", "a")]
    assert memory.all_keys(CONFIG_MAPS, "there") == [Key("there", "a")]


def test_indexes_are_those_that_were_declared_and_the_owners(memory):
    assert memory.keys(CONFIG_MAPS, "colour", "red") == [Key("here", "a"), Key("here", "b")]
    assert memory.keys(CONFIG_MAPS, OWNER, "o") == [Key("here", "a"), Key("there", "a")]
    assert memory.by_index(CONFIG_MAPS, "colour", "blue") == []
    with pytest.raises(KeyError, match="no index 'size' of configmaps; declared: colour, owner"):
        memory.keys(CONFIG_MAPS, "size", "1")


def test_a_kind_may_be_absent(memory):
    assert memory.serves(CONFIG_MAPS)
    assert not memory.serves(PODS)
    assert memory.list(PODS) == []


def test_objects_come_and_go(memory):
    memory.put(CONFIG_MAPS, config("c", colour="blue"))
    memory.remove(CONFIG_MAPS, "b", "here")
    assert memory.get(CONFIG_MAPS, "b", "here") is None
    assert memory.keys(CONFIG_MAPS, "colour", "blue") == [Key("here", "c")]
