"""Local model caches on an API server: lists of nodes, volumes, and where we do better than KServe.

No program of a node runs here: tests write the status of LocalModelNodes as it would.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import pytest
from tests import definitions
from tests.cluster.programs import controllers
from tests.definitions import PATIENCE
from tests.waiting import until

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_NAMESPACE, NODE_GROUP
from isvc.api.resources import (
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, dig, is_being_deleted, name_of, resource_version_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    Resource,
)
from isvc.programs.localmodel_manager import PROGRAM
from isvc.toolkit.client import Client, kubeconfig

KINDS = (
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)


@dataclass(frozen=True)
class Place:
    """A corner of the cluster: everything in it is called after it."""

    client: Client
    name: str

    @property
    def jobs(self) -> str:
        return f"{self.name}-jobs"

    async def create(
        self, resource: Resource, name: str, namespace: str = "", *, labels: Object | None = None, **fields: object
    ) -> Object:
        metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {}), "labels": labels or {}}
        return await self.client.create(resource, resource.typed({"metadata": metadata, **fields}))

    async def add_namespace(self, name: str) -> None:
        await self.create(NAMESPACES, name)

    async def add_group(self, pool: str, path: str = "/models") -> str:
        name = f"{self.name}-{pool}"
        await self.create(LOCAL_MODEL_NODE_GROUPS, name, spec=self.group(pool, path))
        return name

    def group(self, pool: str, path: str = "/models", capacity: str = "10Gi") -> Object:
        expression = {"key": "pool", "operator": "In", "values": [f"{self.name}-{pool}"]}
        volume = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": capacity},
            "hostPath": {"path": path, "type": ""},
            "storageClassName": "local-storage",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        }
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": "local-storage",
        }
        return {"storageLimit": "10Gi", "persistentVolumeSpec": volume, "persistentVolumeClaimSpec": claim}

    async def add_node(self, number: int, pool: str) -> str:
        name = f"{self.name}-n{number}"
        await self.create(NODES, name, labels={"pool": f"{self.name}-{pool}"})
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await self.client.patch(NODES, name, ready, subresource="status")
        return name

    async def add_cache(self, name: str, *groups: str, namespace: str = "") -> str:
        resource = LOCAL_MODEL_NAMESPACE_CACHES if namespace else LOCAL_MODEL_CACHES
        spec = {"sourceModelUri": f"hf://a/{name}", "modelSize": "1Gi", "nodeGroups": list(groups)}
        await self.create(resource, name, namespace, spec=spec)
        return name

    async def add_service(self, cache: str, namespace: str, *, own: bool = False) -> None:
        labels = {LOCAL_MODEL: cache, **({LOCAL_MODEL_NAMESPACE: namespace} if own else {})}
        spec = {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": f"hf://a/{cache}"}}}
        await self.create(INFERENCE_SERVICES, f"for-{cache}", namespace, labels=labels, spec=spec)

    async def entries(self, node: str) -> list[str]:
        listed = await self.client.find(LOCAL_MODEL_NODES, node)
        return sorted(str(each["modelName"]) for each in dig(listed, "spec", "localModels") or ())

    async def has(self, resource: Resource, name: str, namespace: str = "") -> bool:
        """Whether it is there, and not on its way out: nobody takes finalizers of volumes away here."""
        found = await self.client.find(resource, name, namespace)
        return found is not None and not is_being_deleted(found)

    async def status(self, cache: str) -> Object:
        found: Object = (await self.client.get(LOCAL_MODEL_CACHES, cache)).get("status") or {}
        return found

    async def report(self, node: str, model: str, state: str) -> None:
        """Says how far a node is, as its program would."""
        await self.client.patch(
            LOCAL_MODEL_NODES, node, {"status": {"modelStatus": {model: state}}}, subresource="status"
        )

    async def versions(self) -> dict[str, str]:
        """The version of everything that caches have to do with here."""
        kinds = (*KINDS, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS)
        found = [(kind.kind, each) for kind in kinds for each in (await self.client.list(kind)).items]
        return {
            f"{kind}/{name_of(each)}": resource_version_of(each) for kind, each in found if self.name in name_of(each)
        }

    async def release(self, claim: str, namespace: str) -> None:
        """Lets a claim go, as Kubernetes does when no pod uses it."""
        with suppress(NotFound):
            await self.client.patch(PERSISTENT_VOLUME_CLAIMS, claim, {"metadata": {"finalizers": None}}, namespace)


@asynccontextmanager
async def running(cluster, place: Place) -> AsyncIterator[None]:
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, controllers(own, PROGRAM, place.name):
        yield


@pytest.fixture
async def place(client) -> AsyncIterator[Place]:
    """With its own configuration, groups `a` and `b`, and a node in each."""
    await definitions.install(client, *map(definitions.ours, KINDS))
    made = Place(client, f"lm-{uuid.uuid4().hex[:8]}")
    for namespace in (made.name, made.jobs):
        await made.add_namespace(namespace)
    data = {"localModel": json.dumps({"enabled": True, "jobNamespace": made.jobs})}
    await made.create(CONFIG_MAPS, "inferenceservice-config", made.name, data=data)
    yield made
    for resource in (LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES):
        for each in (await client.list(resource)).items:
            if made.name in name_of(each):
                namespace = each["metadata"].get("namespace", "")
                with suppress(NotFound):
                    await client.patch(resource, name_of(each), {"metadata": {"finalizers": None}}, namespace)
                    await client.delete(resource, name_of(each), namespace)


async def test_a_list_has_every_cache_whatever_races(cluster, client, place) -> None:
    """Caches of two kinds come and go while somebody who knows nothing of others overwrites the list.

    Two managers are at work: one of them has not noticed yet that it does not lead any longer.
    """
    group, node = await place.add_group("a"), await place.add_node(1, "a")
    names = [f"{place.name}-c{number}" for number in range(20)]
    own = dict.fromkeys(names[::2], place.name)
    async with running(cluster, place), running(cluster, place):
        await asyncio.gather(*(place.add_cache(name, group, namespace=own.get(name, "")) for name in names))
        await until(lambda: _equals(place.entries(node), sorted(names)), "every cache has its entry", PATIENCE)
        lost = {"spec": {"localModels": [{"modelName": "strange", "sourceModelUri": "hf://b"}]}}
        await client.patch(LOCAL_MODEL_NODES, node, lost)
        await until(lambda: _equals(place.entries(node), sorted(names)), "what was lost comes back", PATIENCE)
        for name in names[:4]:
            resource = LOCAL_MODEL_NAMESPACE_CACHES if name in own else LOCAL_MODEL_CACHES
            await client.delete(resource, name, own.get(name, ""))
        await until(lambda: _equals(place.entries(node), sorted(names[4:])), "only theirs go", PATIENCE)


async def test_who_keeps_emptying_a_list_is_told_of(cluster, client, place) -> None:
    """Two managers of caches would write as fast as they can; the list is repaired less and less often."""
    group, node = await place.add_group("a"), await place.add_node(1, "a")
    cache = await place.add_cache(f"{place.name}-m", group)

    async def is_told_of() -> bool:
        if await place.entries(node) == [cache]:
            await client.patch(LOCAL_MODEL_NODES, node, {"spec": {"localModels": []}})
        events = (await client.list(EVENTS)).items
        return any(each["reason"] == "Contested" and each["involvedObject"]["name"] == node for each in events)

    async with running(cluster, place):
        await until(is_told_of, "an event says so", PATIENCE)


async def test_a_group_or_node_that_leaves_loses_its_copy(cluster, client, place) -> None:
    one, other = await place.add_group("a"), await place.add_group("b")
    first, second, third = [await place.add_node(*each) for each in ((1, "a"), (2, "a"), (3, "b"))]
    cache = await place.add_cache(f"{place.name}-m", one, other)
    async with running(cluster, place):
        await until(lambda: _has_nodes(place, cache, {first, second, third}), "all nodes are to have the model")
        await client.patch(NODES, second, {"metadata": {"labels": {"pool": "elsewhere"}}})
        await until(lambda: _equals(place.entries(second), []), "a node that leaves its group does not")
        await client.patch(LOCAL_MODEL_CACHES, cache, {"spec": {"nodeGroups": [one]}})
        await until(lambda: _equals(place.entries(third), []), "nor does one of a group that leaves")
        await until(lambda: _has_nodes(place, cache, {first}), "the status forgets both")
        await until(lambda: _not(place.has(PERSISTENT_VOLUME_CLAIMS, f"{cache}-{other}", place.jobs)), "its claim goes")
        await place.release(f"{cache}-{other}", place.jobs)
        await until(lambda: _not(place.has(PERSISTENT_VOLUMES, f"{cache}-{other}-download")), "and then its volume")
        assert await place.has(PERSISTENT_VOLUMES, f"{cache}-{one}-download")
        await client.delete(NODES, first)
        await until(lambda: _not(place.has(LOCAL_MODEL_NODES, first)), "a node that is gone needs no list")


CSI: Object = {"csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-1"}, "accessModes": ["ReadWriteMany"]}
NFS: Object = {"nfs": {"server": "files.example", "path": "/models"}, "accessModes": ["ReadWriteMany"]}


@pytest.mark.parametrize(("own", "share"), [(False, CSI), (True, NFS)], ids=["cluster, CSI", "namespace, NFS"])
async def test_volumes_that_no_service_uses_go(cluster, client, place, own: bool, share: Object) -> None:
    group = await place.add_group("a")
    volume_of_share = {"spec": {"persistentVolumeSpec": {"hostPath": None, **share}}}
    await client.patch(LOCAL_MODEL_NODE_GROUPS, group, volume_of_share)
    cache = await place.add_cache(f"{place.name}-m", group, namespace=place.name if own else "")
    claim, volume = f"{cache}-{group}", f"{cache}-{group}-{place.name}"
    async with running(cluster, place):
        await place.add_service(cache, place.name, own=own)
        await until(lambda: place.has(PERSISTENT_VOLUME_CLAIMS, claim, place.name), "there is a claim for the service")
        await until(lambda: place.has(PERSISTENT_VOLUMES, volume), "and a volume")
        made = (await client.get(PERSISTENT_VOLUMES, volume))["spec"]
        assert {field: made[field] for field in share} == share
        await client.delete(INFERENCE_SERVICES, f"for-{cache}", place.name)
        await until(lambda: _not(place.has(PERSISTENT_VOLUME_CLAIMS, claim, place.name)), "the claim goes")
        await place.release(claim, place.name)
        await until(lambda: _not(place.has(PERSISTENT_VOLUMES, volume)), "and the volume")
        download = f"{cache}-{group}-{place.name}-download" if own else f"{cache}-{group}-download"
        assert await place.has(PERSISTENT_VOLUMES, download)


async def test_a_later_group_gets_new_nodes_and_services_that_move_to_it(cluster, client, place) -> None:
    one, other = await place.add_group("a"), await place.add_group("b")
    cache = await place.add_cache(f"{place.name}-m", one, other)
    async with running(cluster, place):
        await place.add_service(cache, place.name)
        await until(
            lambda: place.has(PERSISTENT_VOLUME_CLAIMS, f"{cache}-{one}", place.name), "the first group is used"
        )
        node = await place.add_node(1, "b")
        await until(lambda: _equals(place.entries(node), [cache]), "a node of the second is to have the model")
        move = {"metadata": {"annotations": {NODE_GROUP: other}}}
        await client.patch(INFERENCE_SERVICES, f"for-{cache}", move, place.name)
        await until(lambda: place.has(PERSISTENT_VOLUME_CLAIMS, f"{cache}-{other}", place.name), "and is used")
        await until(lambda: _not(place.has(PERSISTENT_VOLUME_CLAIMS, f"{cache}-{one}", place.name)), "in its place")


async def test_a_claim_that_somebody_else_made_is_left_alone(cluster, client, place) -> None:
    group = await place.add_group("a")
    cache = await place.add_cache(f"{place.name}-m", group)
    claim, volume = f"{cache}-{group}", f"{cache}-{group}-{place.name}"
    spec = {**place.group("a")["persistentVolumeClaimSpec"], "volumeName": "mine"}
    await place.create(PERSISTENT_VOLUME_CLAIMS, claim, place.name, spec=spec)
    async with running(cluster, place):
        await place.add_service(cache, place.name)
        await until(lambda: place.has(PERSISTENT_VOLUMES, volume), "there is a volume for the service")
        await client.delete(INFERENCE_SERVICES, f"for-{cache}", place.name)
        await until(lambda: _not(place.has(PERSISTENT_VOLUMES, volume)), "which goes with it")
    assert await place.has(PERSISTENT_VOLUME_CLAIMS, claim, place.name)


@pytest.mark.parametrize("claim", ["", "theirs"], ids=["unbound", "bound"])
async def test_a_volume_that_somebody_else_made_is_left_alone(cluster, client, place, claim: str) -> None:
    """Whoever may write caches in a namespace cannot have any volume deleted by choosing a name."""
    group, stem = await place.add_group("a"), f"{place.name}-archive"
    theirs, named = f"{stem}-2019-{place.name}", f"{stem}-{group}-{place.name}"
    spec = place.group("a", "/archive")["persistentVolumeSpec"]
    if claim:
        spec["claimRef"] = {"kind": "PersistentVolumeClaim", "name": claim, "namespace": place.name}
        await place.create(PERSISTENT_VOLUMES, named, spec=spec)
    await place.create(PERSISTENT_VOLUMES, theirs, spec=spec)
    cache = await place.add_cache(stem, group, namespace=place.name)
    download = f"{cache}-{group}-{place.name}-download"
    async with running(cluster, place):
        await until(lambda: place.has(PERSISTENT_VOLUMES, download), "there is a volume for the download")
        await client.delete(LOCAL_MODEL_NAMESPACE_CACHES, cache, place.name)
        await until(lambda: _not(place.has(PERSISTENT_VOLUMES, download)), "which goes with the cache")
        await until(lambda: _not(place.has(LOCAL_MODEL_NAMESPACE_CACHES, cache, place.name)), "which is gone")
    assert await place.has(PERSISTENT_VOLUMES, theirs)
    assert not claim or await place.has(PERSISTENT_VOLUMES, named)


async def test_a_group_that_does_not_exist_is_reported_and_holds_no_deletion(cluster, client, place) -> None:
    node, group = await place.add_node(1, "a"), f"{place.name}-a"
    cache = await place.add_cache(f"{place.name}-m", group)
    async with running(cluster, place):
        await until(lambda: _said(place, cache, "NodeGroupNotFound", group), "an event names the group")
        await place.add_group("a")
        await until(lambda: place.entries(node), "it starts when there is the group")
        await client.delete(LOCAL_MODEL_NODE_GROUPS, group)
        await until(lambda: _said(place, cache, "NodeGroupNotFound", group, times=2), "and when it is gone")
        assert await place.entries(node) == [cache], "what exists is left alone"
        await client.delete(LOCAL_MODEL_CACHES, cache)
        await until(lambda: _not(_exists(client, cache)), "the cache can go all the same")
        assert await place.entries(node) == []


async def test_an_edited_group_reaches_its_volumes_or_says_why_not(cluster, client, place) -> None:
    group = await place.add_group("a")
    cache = await place.add_cache(f"{place.name}-m", group)
    volume = f"{cache}-{group}-download"
    async with running(cluster, place):
        await until(lambda: place.has(PERSISTENT_VOLUME_CLAIMS, f"{cache}-{group}", place.jobs), "there is a volume")
        await client.patch(LOCAL_MODEL_NODE_GROUPS, group, {"spec": place.group("a", capacity="20Gi")})
        await until(lambda: _capacity(client, volume, "20Gi"), "what can change does")
        await client.patch(LOCAL_MODEL_NODE_GROUPS, group, {"spec": place.group("a", "/elsewhere", "20Gi")})
        await until(lambda: _said(place, cache, "VolumeOutdated", "keeps its hostPath"), "the rest is said")
        await client.delete(PERSISTENT_VOLUME_CLAIMS, f"{cache}-{group}", place.jobs)
        await client.patch(PERSISTENT_VOLUMES, volume, {"status": {"phase": "Released"}}, subresource="status")
        await place.release(f"{cache}-{group}", place.jobs)
        await until(lambda: _not(place.has(PERSISTENT_VOLUMES, volume)), "a volume without its claim goes")
        await client.patch(PERSISTENT_VOLUMES, volume, {"metadata": {"finalizers": None}})
        await until(lambda: _path(client, volume, "/elsewhere"), "and comes back as its group is now")


async def test_a_restart_writes_nothing(cluster, client, place) -> None:
    group, node = await place.add_group("a"), await place.add_node(1, "a")
    cache = await place.add_cache(f"{place.name}-m", group)
    private = await place.add_cache(f"{place.name}-p", group, namespace=place.name)
    await place.add_service(cache, place.name)
    async with running(cluster, place):
        await until(lambda: _equals(place.entries(node), [cache, private]), "both are listed")
        await until(lambda: place.has(PERSISTENT_VOLUME_CLAIMS, f"{cache}-{group}", place.name), "with their volumes")
        await place.report(node, cache, "ModelDownloaded")
        await until(lambda: _equals(_count(place, cache, "available"), 1), "the copy counts")
    before = await place.versions()
    async with running(cluster, place):
        await place.report(node, cache, "ModelDownloadError")
        await until(lambda: _equals(_count(place, cache, "failed"), 1), "it is at work again")
    after = await place.versions()
    assert {key for key in after if after[key] != before.get(key)} == {
        f"LocalModelCache/{cache}",
        f"LocalModelNode/{node}",
    }
    assert before.keys() == after.keys()


async def _equals(value, wanted: object) -> bool:
    return bool(await value == wanted)


async def _not(value) -> bool:
    return not await value


async def _exists(client: Client, cache: str) -> bool:
    return await client.find(LOCAL_MODEL_CACHES, cache) is not None


async def _said(place: Place, cache: str, reason: str, text: str, times: int = 1) -> bool:
    events = [
        each
        for each in (await place.client.list(EVENTS)).items
        if each["involvedObject"]["name"] == cache and each["reason"] == reason and text in each["message"]
    ]
    return sum(int(each.get("count") or 1) for each in events) >= times


async def _has_nodes(place: Place, cache: str, nodes: set[str]) -> bool:
    status = await place.status(cache)
    return set(status.get("nodeStatus") or {}) == nodes and status["copies"]["total"] == len(nodes)


async def _capacity(client: Client, volume: str, capacity: str) -> bool:
    return bool((await client.get(PERSISTENT_VOLUMES, volume))["spec"]["capacity"]["storage"] == capacity)


async def _path(client: Client, volume: str, path: str) -> bool:
    return bool(dig(await client.find(PERSISTENT_VOLUMES, volume), "spec", "hostPath", "path") == path)


async def _count(place: Place, cache: str, copies: str) -> int:
    return int((await place.status(cache)).get("copies", {}).get(copies) or 0)
