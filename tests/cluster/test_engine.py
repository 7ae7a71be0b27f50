"""The engine under an example controller: one request per child, none for a settled one, always back to the plan."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from examples.greeter import Greeter
from tests.cluster.programs import running_manager
from tests.waiting import until

from isvc.engine.plan import Want
from isvc.kube.objects import Key, Object, name_of, uid_of
from isvc.kube.owners import owner_refs
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SERVICES, Resource
from isvc.toolkit.client import Client, PatchKind, kubeconfig

EXAMPLE = Path(__file__).parents[2] / "examples" / "greeter.py"
WITHIN = 180.0
REVISION = {"deployment.kubernetes.io/revision": "1"}


class Running:
    """A greeter at work, with the writes it made."""

    def __init__(self, greeter: Greeter, namespace: str) -> None:
        self.greeter = greeter
        self.namespace = namespace
        self.reconciled: set[Key] = set()

    @property
    def cache(self):
        return self.greeter.cache

    def writes(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for sample in next(iter(self.greeter.manager.metrics.requests.collect())).samples:
            if sample.name.endswith("_total") and sample.labels["method"] != "GET":
                counts[sample.labels["method"]] = counts.get(sample.labels["method"], 0) + int(sample.value)
        return counts

    def children(self, kind=None) -> int:
        kinds = (kind,) if kind else (DEPLOYMENTS, SERVICES)
        return sum(len(self.cache.list(each, self.namespace)) for each in kinds)

    async def settled(self, owners: int, children: int | None = None) -> None:
        wanted = owners * 2 if children is None else children
        await until(
            lambda: len(self.reconciled) >= owners and self.children() == wanted and self.idle(), "settled", WITHIN
        )

    def idle(self) -> bool:
        queue = self.greeter.controller.queue
        return not len(queue) and not queue.busy


@asynccontextmanager
async def running(cluster, namespace: str) -> AsyncIterator[Running]:
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
        greeter = Greeter(client, namespace)
        state = Running(greeter, namespace)
        reconcile = greeter.reconcile

        async def counted(key: Key) -> None:
            await reconcile(key)
            state.reconciled.add(key)

        greeter.controller.reconcile = counted
        async with running_manager(greeter.manager):
            yield state


def owner(name: str, namespace: str, **data: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": {"example": "greeting"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def create_owners(client: Client, namespace: str, count: int) -> None:
    free = asyncio.Semaphore(20)

    async def create(number: int) -> None:
        async with free:
            await client.create(CONFIG_MAPS, owner(f"greeter-{number}", namespace))

    await asyncio.gather(*map(create, range(count)))


@pytest.fixture
def owners(request) -> int:
    return request.config.getoption("--owners")


async def test_one_request_per_child_and_none_after_a_restart(cluster, client, namespace, owners):
    await create_owners(client, namespace, owners)
    async with running(cluster, namespace) as first:
        await first.settled(owners)
        assert first.writes() == {"POST": owners * 2}
    async with running(cluster, namespace) as second:
        await second.settled(owners)
        assert second.writes() == {}


async def test_what_is_deleted_or_edited_by_hand_comes_back(cluster, client, namespace):
    await create_owners(client, namespace, 10)
    async with running(cluster, namespace) as state:
        await state.settled(10)
        for number in range(3):
            await client.delete(DEPLOYMENTS, f"greeter-{number}", namespace)
            await client.delete(SERVICES, f"greeter-{number}", namespace)
        container = {"name": "greeter", "image": "other:2", "env": [{"name": "BY", "value": "hand"}]}
        edit = {"spec": {"replicas": 5, "template": {"spec": {"containers": [container]}}}}
        await _edit(client, DEPLOYMENTS, "greeter-5", namespace, edit)
        await _edit(client, SERVICES, "greeter-5", namespace, {"spec": {"selector": {"stray": "x"}}})
        await _edit(client, SERVICES, "greeter-6", namespace, {"metadata": {"labels": {"greeter": None}}})

        def restored() -> bool:
            deployment = state.cache.get(DEPLOYMENTS, "greeter-5", namespace)
            service, labelled = (state.cache.get(SERVICES, f"greeter-{n}", namespace) for n in (5, 6))
            if not (state.children() == 20 and state.idle() and deployment and service and labelled):
                return False
            container = deployment["spec"]["template"]["spec"]["containers"][0]
            return (
                container["image"] == "greeter:1"
                and "env" not in container
                and service["spec"]["selector"] == {"greeter": "greeter-5"}
                and labelled["metadata"].get("labels") == {"greeter": "greeter-6"}
            )

        await until(restored, "all as planned")
        live = await client.get(DEPLOYMENTS, "greeter-5", namespace)
        assert live["spec"]["replicas"] == 5  # yielded: whoever scales it is right


async def test_what_others_add_causes_no_write(cluster, client, namespace):
    await create_owners(client, namespace, 3)
    async with running(cluster, namespace) as state:
        await state.settled(3)
        before = state.writes()
        note = {"metadata": {"annotations": REVISION, "labels": {"team": "a"}}}
        await _edit(client, DEPLOYMENTS, "greeter-0", namespace, note)
        await _edit(client, SERVICES, "greeter-0", namespace, {"metadata": {"finalizers": ["example.com/hold"]}})
        await _edit(client, DEPLOYMENTS, "greeter-1", namespace, {"spec": {"replicas": 7}})
        newest = await _edit(client, CONFIG_MAPS, "greeter-2", namespace, {"data": {"greeting": "salut"}})
        await until(lambda: _args(state, "greeter-2") == ["salut"] and state.idle(), "the new greeting")
        assert newest["data"]["greeting"] == "salut"
        assert state.writes() == {**before, "PUT": 1}
    async with running(cluster, namespace) as again:
        await again.settled(3)
        assert again.writes() == {}
    await _edit(client, SERVICES, "greeter-0", namespace, {"metadata": {"finalizers": None}})


async def test_a_label_that_is_no_longer_wanted_goes_also_after_a_restart(cluster, client, namespace, monkeypatch):
    import examples.greeter as example

    await create_owners(client, namespace, 1)
    plan = example.plan

    def with_label(parent: Object):
        planned = plan(parent)
        answer = planned.parts[0].answer
        assert isinstance(answer, Want)
        manifest = answer.children[0].manifest
        manifest["metadata"] = {**manifest["metadata"], "annotations": {"example.com/extra": "1"}}
        return planned

    monkeypatch.setattr(example, "plan", with_label)
    async with running(cluster, namespace) as first:
        await first.settled(1)
    await _edit(client, DEPLOYMENTS, "greeter-0", namespace, {"metadata": {"annotations": REVISION}})
    monkeypatch.setattr(example, "plan", plan)
    async with running(cluster, namespace) as second:
        await second.settled(1)
        assert second.writes() == {"PUT": 1}
    live = await client.get(DEPLOYMENTS, "greeter-0", namespace)
    assert live["metadata"]["annotations"] == REVISION


async def test_retired_children_go_and_held_ones_would_stay(cluster, client, namespace):
    await create_owners(client, namespace, 2)
    async with running(cluster, namespace) as state:
        await state.settled(2)
        await _edit(client, CONFIG_MAPS, "greeter-0", namespace, {"data": {"state": "off"}})
        await state.settled(2, children=2)
        assert {name_of(each) for each in state.cache.list(SERVICES, namespace)} == {"greeter-1"}


async def test_a_namesake_is_left_alone_and_told(cluster, client, namespace):
    service = {"ports": [{"port": 1234}], "selector": {"not": "ours"}}
    foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "greeter-0", "namespace": namespace}}
    foreign = await client.create(SERVICES, {**foreign, "spec": service})
    await create_owners(client, namespace, 1)
    async with running(cluster, namespace) as state:
        problem = await until(
            lambda: state.greeter.problems.get(Key(namespace, "greeter-0")), "the problem is reported"
        )
        assert "Service greeter-0 exists already" in problem
        assert await client.get(SERVICES, "greeter-0", namespace) == foreign
        await client.delete(SERVICES, "greeter-0", namespace)
        await state.settled(1)
        await until(lambda: not state.greeter.problems, "no problem left")


async def test_the_children_of_a_deleted_namesake_are_inherited(cluster, client, namespace):
    await client.create(CONFIG_MAPS, owner("g", namespace, greeting="hello"))
    async with running(cluster, namespace) as state:
        await state.settled(1)
    await client.delete(CONFIG_MAPS, "g", namespace)
    heir = await client.create(CONFIG_MAPS, owner("g", namespace, greeting="hello"))
    async with running(cluster, namespace) as state:
        await state.settled(1)
        for kind in (DEPLOYMENTS, SERVICES):
            (child,) = state.cache.list(kind, namespace)
            assert [ref["uid"] for ref in owner_refs(child)] == [uid_of(heir)]


async def test_orphans_are_adopted(cluster, client, namespace):
    """As an owner that is deleted with `--cascade=orphan` leaves them, and another has what it had."""
    heir = await client.create(CONFIG_MAPS, owner("g", namespace, greeting="hello"))
    async with running(cluster, namespace) as state:
        await state.settled(1)
        before = [state.cache.list(kind, namespace) for kind in (DEPLOYMENTS, SERVICES)]
    for kind in (DEPLOYMENTS, SERVICES):
        await client.patch(kind, "g", {"metadata": {"ownerReferences": None}}, namespace)
    async with running(cluster, namespace) as state:
        await state.settled(1)
        for kind, [child] in zip((DEPLOYMENTS, SERVICES), before, strict=True):
            (adopted,) = state.cache.list(kind, namespace)
            assert [ref["uid"] for ref in owner_refs(adopted)] == [uid_of(heir)]
            assert (uid_of(adopted), adopted["spec"]) == (uid_of(child), child["spec"])


async def test_a_refused_child_is_told_and_the_others_go_on(cluster, client, namespace):
    await create_owners(client, namespace, 1)
    await client.create(CONFIG_MAPS, owner("not.for-services", namespace))
    async with running(cluster, namespace) as state:
        problem = await until(
            lambda: state.greeter.problems.get(Key(namespace, "not.for-services")), "the problem is reported"
        )
        assert "not.for-services" in problem
        await until(lambda: state.children(SERVICES) == 1 and state.children(DEPLOYMENTS) == 2, "the others")


async def test_killed_at_any_moment_it_converges(cluster, client, namespace):
    count, chance = 60, random.Random(namespace)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    creating = asyncio.create_task(create_owners(client, namespace, count))
    for _ in range(3):
        process = await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE), env=environment, stderr=DEVNULL)
        try:
            have = await _children(client, namespace)
            await until(partial(_more_than, client, namespace, have), "progress", WITHIN)
            await asyncio.sleep(chance.random() * 0.2)
        finally:
            process.kill()
            await process.wait()
    await creating
    await client.delete(DEPLOYMENTS, "greeter-1", namespace)
    async with running(cluster, namespace) as state:
        await state.settled(count)
        assert not state.greeter.problems
    for kind in (DEPLOYMENTS, SERVICES):
        names = [name_of(each) for each in (await client.list(kind, namespace)).items]
        assert sorted(names) == sorted(f"greeter-{number}" for number in range(count))


async def _children(client: Client, namespace: str) -> int:
    return sum([len((await client.list(kind, namespace)).items) for kind in (DEPLOYMENTS, SERVICES)])


async def _more_than(client: Client, namespace: str, have: int) -> bool:
    now = await _children(client, namespace)
    return now > have or now == 120


def _args(state: Running, name: str) -> list[str]:
    deployment = state.cache.get(DEPLOYMENTS, name, state.namespace) or {}
    return deployment["spec"]["template"]["spec"]["containers"][0]["args"]


async def _edit(client: Client, kind: Resource, name: str, namespace: str, change: Object) -> Object:
    """What a person does with kubectl."""
    return await client.patch(kind, name, change, namespace, kind=PatchKind.MERGE, field_manager="kubectl-edit")
