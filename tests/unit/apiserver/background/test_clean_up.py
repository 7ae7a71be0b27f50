"""What goes by itself: dependents of deleted owners, namespaces that were emptied, objects of deleted definitions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.apiserver.conftest import CONFIG_MAPS, MERGE, NAMESPACES
from tests.waiting import until

from isvc.apiserver.background.definitions import DefinitionFinalizer
from isvc.apiserver.background.namespaces import AUTHORITY, NamespaceFinalizer

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
controllers = pytest.mark.parametrize("http", [{"controllers": True}], indirect=True)


def owned_by(*owners: dict[str, Any], block: bool = True) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]


def names(http) -> set[str]:
    return {entry.name for entry in http.server.store.list("configmaps", "default")} - {AUTHORITY}


@controllers
async def test_dependents_follow_their_owner_through_generations(http):
    root = await http.create(CONFIG_MAPS, metadata={"name": "root"})
    child = await http.create(CONFIG_MAPS, metadata={"name": "child", "ownerReferences": owned_by(root)})
    await http.create(CONFIG_MAPS, metadata={"name": "grandchild", "ownerReferences": owned_by(child)})
    await http.create(CONFIG_MAPS, metadata={"name": "stranger"})
    await http.ask("DELETE", f"{CONFIG_MAPS}/root")
    await until(lambda: names(http) == {"stranger"})


@controllers
async def test_one_living_owner_is_enough(http):
    one = await http.create(CONFIG_MAPS, metadata={"name": "one"})
    two = await http.create(CONFIG_MAPS, metadata={"name": "two"})
    await http.create(CONFIG_MAPS, metadata={"name": "child", "ownerReferences": owned_by(one, two)})
    await http.ask("DELETE", f"{CONFIG_MAPS}/one")

    async def only_two_is_left() -> bool:
        child = (await http.ask("GET", f"{CONFIG_MAPS}/child")).body
        return [owner["name"] for owner in child["metadata"]["ownerReferences"]] == ["two"]

    await until(only_two_is_left)
    await http.ask("DELETE", f"{CONFIG_MAPS}/two")
    await until(lambda: names(http) == set())


@controllers
async def test_an_owner_that_never_was_is_as_good_as_gone(http):
    ghost = {"metadata": {"name": "ghost", "uid": "not-there"}}
    await http.create(CONFIG_MAPS, metadata={"name": "child", "ownerReferences": owned_by(ghost)})
    await until(lambda: names(http) == set())


@controllers
async def test_foreground_waits_for_those_that_block(http):
    root = await http.create(CONFIG_MAPS, metadata={"name": "root"})
    held = {"name": "held", "ownerReferences": owned_by(root), "finalizers": ["x.io/hold"]}
    await http.create(CONFIG_MAPS, metadata=held)
    await http.create(CONFIG_MAPS, metadata={"name": "free", "ownerReferences": owned_by(root, block=False)})
    await http.ask("DELETE", f"{CONFIG_MAPS}/root?propagationPolicy=Foreground")
    await until(lambda: names(http) == {"root", "held"})
    await http.patch(f"{CONFIG_MAPS}/held", {"metadata": {"finalizers": None}})
    await until(lambda: names(http) == set())


@controllers
async def test_orphans_stay(http):
    root = await http.create(CONFIG_MAPS, metadata={"name": "root"})
    await http.create(CONFIG_MAPS, metadata={"name": "child", "ownerReferences": owned_by(root)})
    await http.ask("DELETE", f"{CONFIG_MAPS}/root?propagationPolicy=Orphan")
    await until(lambda: names(http) == {"child"})
    child = (await http.ask("GET", f"{CONFIG_MAPS}/child")).body
    assert "ownerReferences" not in child["metadata"]


@controllers
async def test_a_namespace_goes_when_it_is_empty(http):
    await http.create(NAMESPACES, metadata={"name": "going"})
    inside = f"{NAMESPACES}/going/configmaps"
    await http.create(inside, metadata={"name": "a"})
    await http.create(inside, metadata={"name": "held", "finalizers": ["x.io/hold"]})
    await http.ask("DELETE", f"{NAMESPACES}/going")
    await until(lambda: [entry.name for entry in http.server.store.list("configmaps", "going")] == ["held"])
    assert (await http.ask("GET", f"{NAMESPACES}/going")).body["status"]["phase"] == "Terminating"
    await http.patch(f"{inside}/held", {"metadata": {"finalizers": None}})
    await until(lambda: http.server.store.get("namespaces", "", "going") is None)


async def test_a_late_retry_leaves_the_next_namespace_of_the_name_alone(http):
    """What could not be deleted is tried again a second later: the namespace may have gone by then, and come again."""
    await http.create(CONFIG_MAPS, metadata={"name": "new"})
    await NamespaceFinalizer(http.server.api).work("default")
    assert names(http) == {"new"}


async def test_without_controllers_nothing_goes_by_itself(http):
    root = await http.create(CONFIG_MAPS, metadata={"name": "root"})
    await http.create(CONFIG_MAPS, metadata={"name": "child", "ownerReferences": owned_by(root)})
    await http.ask("DELETE", f"{CONFIG_MAPS}/root")
    await http.create(CONFIG_MAPS, metadata={"name": "later"})
    assert names(http) == {"child", "later"}


async def define_foos(http) -> str:
    """Returns where objects of a new kind are, of which one is held."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "x.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"}, "versions": [version]}
    await http.create(CRDS, metadata={"name": "foos.x.io"}, spec=spec)
    foos = "/apis/x.io/v1/namespaces/default/foos"
    held = {"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f", "finalizers": ["x.io/hold"]}}
    assert (await http.ask("POST", foos, held)).code == 201
    return foos


async def test_a_late_retry_leaves_objects_of_the_next_definition_alone(http):
    foos = await define_foos(http)
    await DefinitionFinalizer(http.server.api).work("foos.x.io")
    assert "deletionTimestamp" not in (await http.ask("GET", f"{foos}/f")).body["metadata"]


async def test_a_definition_takes_its_objects_with_it(http):
    foos = await define_foos(http)
    watch = await http.watch(foos)
    assert await watch.take(1) == [("ADDED", "f")]
    await http.ask("DELETE", f"{CRDS}/foos.x.io")
    assert await watch.take(1) == [("MODIFIED", "f")]
    await http.ask("PATCH", f"{foos}/f", {"metadata": {"finalizers": None}}, MERGE)
    await until(
        lambda: http.server.store.get("customresourcedefinitions.apiextensions.k8s.io", "", "foos.x.io") is None
    )
    assert (await http.ask("GET", foos)).code == 404
