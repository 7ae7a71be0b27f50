"""Writes on the owner: only when they say something new, and only on the version they were made for."""

from __future__ import annotations

import pytest
from examples.greeter import plan

from isvc.engine.commit import Commit
from isvc.kube.errors import Conflict, Invalid
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context


class Noted:
    def __init__(self) -> None:
        self.objects: list[Object] = []

    def note(self, resource: Resource, obj: Object, *, owner: Object | None = None) -> None:
        self.objects.append(obj)


@pytest.fixture
async def owner(client, namespace) -> Object:
    parent = {"metadata": {"name": "owner", "namespace": namespace}}
    return await client.create(DEPLOYMENTS, plan(parent).wanted()[0].manifest)


@pytest.fixture
def memory() -> Noted:
    return Noted()


@pytest.fixture
def commit(client, memory) -> Commit:
    return Commit(client, memory)


async def test_a_status_replaces_the_one_that_was_read(commit, memory, owner):
    written = await commit.status(DEPLOYMENTS, owner, {"replicas": 1, "observedGeneration": 1})
    assert written["status"]["replicas"] == 1
    assert memory.objects == [written]
    with pytest.raises(Conflict):
        await commit.status(DEPLOYMENTS, owner, {"replicas": 2})


async def test_nobody_is_left_to_tell_after_a_deletion(client, commit, owner, namespace):
    await client.delete(DEPLOYMENTS, name_of(owner), namespace)
    assert await commit.status(DEPLOYMENTS, owner, {"replicas": 1}) is None


async def test_labels_and_finalizers(client, commit, owner, namespace):
    marked = await commit.metadata(DEPLOYMENTS, owner, finalizers=["example.com/f"], labels={"a": "1"})
    assert marked["metadata"]["finalizers"] == ["example.com/f"]
    assert marked["metadata"]["labels"] == {"greeter": "owner", "a": "1"}
    assert await commit.metadata(DEPLOYMENTS, marked, finalizers=["example.com/f"], labels={"a": "1"}) is None
    with pytest.raises(Conflict):
        await commit.metadata(DEPLOYMENTS, owner, finalizers=["example.com/another"])
    freed = await commit.metadata(DEPLOYMENTS, marked, finalizers=[])
    assert not freed["metadata"].get("finalizers")


async def test_labels_do_not_go_over_an_edit_that_was_not_seen(client, commit, owner, namespace):
    """What was planned before it would be taken for a plan of it, and a patch of the spec would undo it."""
    edited = await client.patch(DEPLOYMENTS, name_of(owner), {"spec": {"replicas": 3}}, namespace)
    with pytest.raises(Conflict):
        await commit.metadata(DEPLOYMENTS, owner, labels={"a": "1"}, spec={"replicas": 2})
    marked = await commit.metadata(DEPLOYMENTS, edited, labels={"a": "1"})
    assert marked["spec"]["replicas"] == 3


async def test_a_patch_does_not_reach_another_object_of_the_name(client, memory, owner, namespace):
    context = Context(client, memory, None, SystemClock())  # type: ignore[arg-type]
    await client.delete(DEPLOYMENTS, name_of(owner), namespace)
    again = {**owner, "metadata": {"name": name_of(owner), "namespace": namespace}}
    await client.create(DEPLOYMENTS, again)
    with pytest.raises((Conflict, Invalid)):
        await context.patch(DEPLOYMENTS, owner, {"spec": {"replicas": 0}})
