"""A kind that belongs to no namespace: children in several, others known by their labels, entries in shared objects.

An example of a kind: for every namespace that a cache names there is a ConfigMap, which it owns; for all of them one
ClusterRoleBinding, which carries its label; and each node has an entry for it in a list that all caches share.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from tests import definitions
from tests.cluster.programs import running_manager
from tests.waiting import until

from isvc.api.localmodel import LocalModelCache
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NODES
from isvc.engine import kind as engine
from isvc.engine.kind import Folded, Kind
from isvc.engine.needs import Answers
from isvc.engine.outcome import Outcome, Taken
from isvc.engine.plan import Child, ChildKey, Edit, Part, Plan, Retire, Want
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, annotations_of, finalizers_of, labels_of, name_of, namespace_of
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS, CONFIG_MAPS, NAMESPACES
from isvc.toolkit.cache import Cache, Reader
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Watch
from isvc.toolkit.manager import Manager
from isvc.toolkit.reads import Read
from isvc.toolkit.recorder import Recorder

LABEL, FINALIZER = "example.com/cache", "example.com/cache"
BY_LABEL = "cache"


@dataclass(frozen=True)
class Observed(engine.Observed):
    nodes: tuple[Object, ...]
    bindings: tuple[Object, ...]

    @property
    def namespaces(self) -> list[str]:
        return annotations_of(self.raw)["namespaces"].split(",")


def caches(reader: Reader) -> Kind[Observed, Plan]:
    def observe(raw: Object, answers: Answers, now: str) -> Observed:
        bindings = reader.by_index(CLUSTER_ROLE_BINDINGS, BY_LABEL, name_of(raw))
        return Observed(raw, tuple(reader.list(LOCAL_MODEL_NODES)), tuple(bindings), now=now)

    def finalize(raw: Object, answers: Answers, now: str) -> Plan:
        observed = observe(raw, answers, now)
        entries = tuple(_entry(node, name_of(raw), wanted=False) for node in observed.nodes)
        found = tuple((CLUSTER_ROLE_BINDINGS, binding) for binding in observed.bindings)
        goes = Retire("the cache goes")
        return Plan(
            (
                Part("nodes", Want((), entries)),
                Part("rights", goes, found=found),
                Part("copies", goes, frozenset({CONFIG_MAPS})),
            )
        )

    return Kind(
        resource=LOCAL_MODEL_CACHES,
        api_type=LocalModelCache,
        conditions=None,
        finalizer=FINALIZER,
        observe=observe,
        plan=plan,
        fold=fold,
        finalize=finalize,
        reports_children=True,
    )


def plan(observed: Observed) -> Plan:
    name = observed.name
    copies = tuple(_copy(name, namespace) for namespace in observed.namespaces)
    found = tuple((CLUSTER_ROLE_BINDINGS, binding) for binding in observed.bindings)
    entries = tuple(_entry(node, name, wanted=True) for node in observed.nodes)
    return Plan(
        (
            Part("copies", Want(copies), frozenset({CONFIG_MAPS})),
            Part("rights", Want((_binding(name, annotations_of(observed.raw).get("bound-as", name)),)), found=found),
            Part("nodes", Want((), entries)),
        )
    )


def fold(observed: Observed, planned: Plan, outcome: Outcome) -> Folded:
    copies = sum(outcome.live(CONFIG_MAPS, observed.name, each) is not None for each in observed.namespaces)
    failed = isinstance(outcome.refusal.result, Taken) if outcome.refusal else False
    return Folded({"copies": {"available": copies, "total": len(observed.namespaces), "failed": int(failed)}})


def _copy(name: str, namespace: str) -> Child:
    metadata = {"name": name, "namespace": namespace}
    return Child(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"for": name}})


def _binding(name: str, called: str) -> Child:
    labels = {LABEL: name}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}
    manifest = {
        "apiVersion": CLUSTER_ROLE_BINDINGS.api_version,
        "kind": CLUSTER_ROLE_BINDINGS.kind,
        "metadata": {"name": called, "labels": labels},
        "roleRef": reference,
    }
    return Child(CLUSTER_ROLE_BINDINGS, manifest, owned=False, labels=labels)


def _entry(node: Object, name: str, *, wanted: bool) -> Edit:
    def change(live: Object | None) -> Object | None:
        if live is None:
            return None
        models = live["spec"]["localModels"]
        others = [model for model in models if model["modelName"] != name]
        own = [{"modelName": name, "sourceModelUri": "hf://a/b"}] if wanted else []
        return None if (len(others) < len(models)) is wanted else {"spec": {"localModels": [*others, *own]}}

    return Edit(ChildKey(LOCAL_MODEL_NODES, name_of(node)), change, node)


class Stage:
    """The controller of caches at work, and what its test looks at."""

    def __init__(self, client: Client) -> None:
        self.client, self.cache = client, Cache(client)
        self.recorder = Recorder(client, "test")
        context = Context(client, self.cache, self.recorder, SystemClock())
        self.reconciler = Reconciler(caches(self.cache), context)
        owner = OwnerOf(LOCAL_MODEL_CACHES)
        watches = (
            Watch(LOCAL_MODEL_CACHES),
            Watch(CONFIG_MAPS, to=owner),
            Watch(LOCAL_MODEL_NODES, to=self._everybody),
        )
        reads = (Read(CLUSTER_ROLE_BINDINGS, labels=LABEL, indexers={BY_LABEL: _labelled}),)
        self.controller = Controller(
            "caches",
            self.reconciler.reconcile,
            watches,
            workers=8,
            reads=reads,
            ignore_own_writes_for=LOCAL_MODEL_CACHES,
        )
        self.manager = Manager(client, self.cache, controllers=[self.controller], services=[self.recorder])

    def _everybody(self, node: Object) -> list[Key]:
        return list(self.cache.all_keys(LOCAL_MODEL_CACHES))

    async def create(self, name: str, *namespaces: str, **annotations: str) -> None:
        metadata = {"name": name, "annotations": {"namespaces": ",".join(namespaces), **annotations}}
        spec = {"sourceModelUri": "hf://a/b", "modelSize": "1Gi", "nodeGroups": ["gpus"]}
        body = {"apiVersion": LOCAL_MODEL_CACHES.api_version, "kind": LOCAL_MODEL_CACHES.kind}
        await self.client.create(LOCAL_MODEL_CACHES, {**body, "metadata": metadata, "spec": spec})

    async def copies(self, name: str) -> set[str]:
        found = (await self.client.list(CONFIG_MAPS)).items
        return {namespace_of(each) for each in found if name_of(each) == name}

    async def bindings(self, name: str) -> set[str]:
        found = (await self.client.list(CLUSTER_ROLE_BINDINGS, labels=f"{LABEL}={name}")).items
        return {name_of(each) for each in found}

    async def entries(self, node: str) -> set[str]:
        models = (await self.client.get(LOCAL_MODEL_NODES, node))["spec"]["localModels"]
        return {model["modelName"] for model in models}

    async def status(self, name: str) -> Object:
        status: Object = (await self.client.get(LOCAL_MODEL_CACHES, name)).get("status") or {}
        return status


def _labelled(obj: Object) -> list[str]:
    return [labels_of(obj)[LABEL]] if LABEL in labels_of(obj) else []


@asynccontextmanager
async def running(cluster) -> AsyncIterator[Stage]:
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
        stage = Stage(client)
        async with running_manager(stage.manager):
            yield stage


@pytest.fixture
async def places(client) -> list[str]:
    """Three namespaces, and a node, called after what the test calls its caches."""
    names = [f"place-{uuid.uuid4().hex[:8]}" for _ in range(3)]
    await definitions.install(client, *map(definitions.ours, (LOCAL_MODEL_CACHES, LOCAL_MODEL_NODES)))
    for name in names:
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    node = {"apiVersion": LOCAL_MODEL_NODES.api_version, "kind": LOCAL_MODEL_NODES.kind}
    await client.create(LOCAL_MODEL_NODES, {**node, "metadata": {"name": names[0]}, "spec": {"localModels": []}})
    return names


async def equals(get: partial, wanted: object) -> bool:
    return bool(await get() == wanted)


async def test_children_in_several_namespaces_come_and_go_with_their_owner(cluster, client, places) -> None:
    name, (one, two, three) = f"cache-{uuid.uuid4().hex[:8]}", places
    async with running(cluster) as stage:
        await stage.create(name, one, two)
        copies = partial(stage.copies, name)
        await until(partial(equals, copies, {one, two}), "there is a copy in each namespace")
        await until(partial(equals, partial(stage.bindings, name), {name}), "and a binding")
        total = {"copies": {"available": 2, "total": 2, "failed": 0}}
        await until(partial(equals, partial(stage.status, name), total), "which the status counts")
        moved = {"metadata": {"annotations": {"namespaces": f"{two},{three}", "bound-as": f"{name}-anew"}}}
        await client.patch(LOCAL_MODEL_CACHES, name, moved)
        await until(partial(equals, copies, {two, three}), "one of them moves")
        await until(
            partial(equals, partial(stage.bindings, name), {f"{name}-anew"}), "a binding that nobody wants goes"
        )
        await client.delete(CONFIG_MAPS, name, three)
        await until(partial(equals, copies, {two, three}), "what somebody deletes comes back")
        await client.delete(LOCAL_MODEL_CACHES, name)
        await until(partial(equals, copies, set()), "all go with their owner")
        await until(partial(equals, partial(stage.bindings, name), set()), "which has no owner reference, too")
        await until(partial(is_gone, client, name), "and the finalizer lets it go")


async def is_gone(client: Client, name: str) -> bool:
    return await client.find(LOCAL_MODEL_CACHES, name) is None


async def test_an_object_of_the_same_name_with_other_labels_is_left_alone(cluster, client, places) -> None:
    name = f"cache-{uuid.uuid4().hex[:8]}"
    foreign = {**_binding("somebody-else", name).manifest}
    await client.create(CLUSTER_ROLE_BINDINGS, foreign)
    async with running(cluster) as stage:
        await stage.create(name, places[0])
        taken = {"copies": {"available": 1, "total": 1, "failed": 1}}
        await until(partial(equals, partial(stage.status, name), taken), "the status says that the name is taken")
        await client.delete(LOCAL_MODEL_CACHES, name)
        await until(partial(is_gone, client, name), "the cache goes")
        assert labels_of(await client.get(CLUSTER_ROLE_BINDINGS, name)) == {LABEL: "somebody-else"}


async def test_owners_that_share_an_object_never_lose_each_others_entries(cluster, client, places) -> None:
    node, prefix = places[0], f"many-{uuid.uuid4().hex[:8]}"
    names = {f"{prefix}-{number}" for number in range(20)}
    async with running(cluster) as stage:
        await asyncio.gather(*(stage.create(name, places[0]) for name in names))
        ours = partial(entries_of, stage, node, prefix)
        await until(partial(equals, ours, names), "every cache has its entry")
        gone = {f"{prefix}-{number}" for number in range(0, 20, 2)}
        await asyncio.gather(*(client.delete(LOCAL_MODEL_CACHES, name) for name in gone))
        await until(partial(equals, ours, names - gone), "those of deleted caches go, and no others")
        for name in names - gone:
            live = await client.get(LOCAL_MODEL_CACHES, name)
            assert finalizers_of(live) == [FINALIZER]
            await client.delete(LOCAL_MODEL_CACHES, name)
        await until(partial(equals, ours, set()), "and then the rest")


async def entries_of(stage: Stage, node: str, prefix: str) -> set[str]:
    return {entry for entry in await stage.entries(node) if entry.startswith(prefix)}
