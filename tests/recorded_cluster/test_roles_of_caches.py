"""The chart's roles are enough for cached models, for the manager and on a node, and no more than they need."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
from tests.cluster.model_nodes import gone
from tests.recorded_cluster import rights
from tests.recorded_cluster.model_caches import JOBS, Story, begin_story
from tests.recorded_cluster.servers import AuditedServer
from tests.recordings import FOLDER
from tests.waiting import until

from isvc.api.localmodel import DOWNLOADED, FAILED
from isvc.api.resources import (
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICE_ACCOUNTS,
)


@pytest.fixture
async def story(server: AuditedServer, tmp_path: Path) -> AsyncIterator[Story]:
    account = partial(rights.kubeconfig, server, "model node")
    async with begin_story(server.cluster.kubeconfig, account, tmp_path) as begun:
        yield begun


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"what starts the server lies beside the recorded cases in {FOLDER}")
async def test_every_right_is_used_and_none_is_missing(server: AuditedServer, story: Story, tmp_path: Path):
    client, node = story.client, story.node
    with rights.running(server, "localmodel", tmp_path):
        node.start()
        await story.add_node()
        await _credentials(story)
        await story.cache("iris", serviceAccountName="reader")
        await story.cache("rose", "default", storage={"key": "store"})
        await until(partial(_not, partial(story.is_gone, LOCAL_MODEL_NODES, node.name)), "the node has a list", 120)
        for key in ("iris", "default/rose"):
            await node.until(key, DOWNLOADED)
        await story.cache("lost", nodeGroups=["nowhere"])
        await until(lambda: _is_warned_of(story, "NodeGroupNotFound"), "a group that does not exist is reported", 120)
        await story.cache("missing")
        await node.until("missing", FAILED)
        for name, namespace in (("iris", ""), ("rose", "default")):
            await story.serve(name, namespace)
            claim = f"{name}-{node.group}"
            missing = partial(story.is_gone, PERSISTENT_VOLUME_CLAIMS, claim, "default")
            await until(partial(_not, missing), f"the service has the claim {claim}", 120)
        larger = {"spec": {"persistentVolumeSpec": {"capacity": {"storage": "2Gi"}}}}
        await client.patch(LOCAL_MODEL_NODE_GROUPS, node.group, larger)
        await until(lambda: _capacity(story, "2Gi"), "volumes follow their group", 120)
        for name in ("iris", "rose"):
            await client.delete(INFERENCE_SERVICES, name, "default")
            await until(partial(_let_go, story, name), "the volume of a service that is gone goes", 120)
        await client.delete(LOCAL_MODEL_NAMESPACE_CACHES, "rose", "default")
        for name in ("iris", "missing"):
            await client.delete(LOCAL_MODEL_CACHES, name)
        for name in ("iris", "rose"):
            await gone(node.model(f"{story.web.address}/{name}"))
        await until(lambda: story.is_gone(LOCAL_MODEL_CACHES, "missing"), "the cache goes", 120)
        await client.delete(NODES, node.name)
        await until(lambda: story.is_gone(LOCAL_MODEL_NODES, node.name), "a node that is gone has no list", 120)
    node.kill()
    for program in ("localmodel", "model node"):
        rights.compare(server.audit(), program)


async def _credentials(story: Story) -> None:
    entry: Object = {"type": "s3", "access_key_id": "user", "secret_access_key": "password"}
    await story.create(SECRETS, "storage-config", JOBS, stringData={"store": json.dumps(entry)})
    await story.create(SECRETS, "own", JOBS, stringData={"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
    await story.create(SERVICE_ACCOUNTS, "reader", JOBS, secrets=[{"name": "own"}])


async def _not(condition: Callable[[], Awaitable[bool]]) -> bool:
    return not await condition()


async def _is_warned_of(story: Story, reason: str) -> bool:
    return reason in {each["reason"] for each in (await story.client.list(EVENTS)).items}


async def _capacity(story: Story, capacity: str) -> bool:
    volume = await story.client.get(PERSISTENT_VOLUMES, f"iris-{story.node.group}-default")
    return bool(volume["spec"]["capacity"]["storage"] == capacity)


async def _let_go(story: Story, name: str) -> bool:
    """Lets go what is to be deleted, as Kubernetes does; returns whether all of it is gone."""
    claim = f"{name}-{story.node.group}"
    found = ((PERSISTENT_VOLUME_CLAIMS, claim, "default"), (PERSISTENT_VOLUMES, f"{claim}-default", ""))
    for resource, each, namespace in found:
        with contextlib.suppress(NotFound):
            live = await story.client.get(resource, each, namespace)
            if live["metadata"].get("deletionTimestamp"):
                await story.client.patch(resource, each, {"metadata": {"finalizers": None}}, namespace)
    return all([await story.is_gone(*each) for each in found])
