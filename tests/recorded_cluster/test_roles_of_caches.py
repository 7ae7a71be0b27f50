"""The chart's roles are enough for cached models, for the manager and on a node, and no more than they need."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests import definitions
from tests.cluster.model_nodes import ModelNode, configure, gone, kubelet
from tests.ports import free_port
from tests.recorded_cluster import rights
from tests.recorded_cluster.servers import BIN, AuditedServer
from tests.recordings import FOLDER
from tests.unit.pods.storage_initializer.sites import Site, site
from tests.waiting import until

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_NAMESPACE
from isvc.api.localmodel import DOWNLOADED, FAILED
from isvc.api.resources import (
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import (
    EVENTS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from isvc.local.node.node import NODE_NAME
from isvc.toolkit.client import Client, kubeconfig

SYSTEM, JOBS = "kserve", "kserve-localmodel-jobs"
KINDS = (
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
    CLUSTER_STORAGE_CONTAINERS,
)


@dataclass
class Story:
    """A cluster with a node, and what people do there."""

    client: Client
    node: ModelNode
    web: Site

    async def create(self, resource: Resource, name: str, namespace: str = "", **fields: object) -> None:
        labels = fields.pop("labels", {})
        metadata = {"name": name, "labels": labels, **({"namespace": namespace} if namespace else {})}
        await self.client.create(resource, resource.typed({"metadata": metadata, **fields}))

    async def cache(self, name: str, namespace: str = "", **spec: object) -> None:
        source = {"sourceModelUri": f"{self.web.address}/{name}", "modelSize": "1Mi", "nodeGroups": [self.node.group]}
        resource = LOCAL_MODEL_NAMESPACE_CACHES if namespace else LOCAL_MODEL_CACHES
        await self.create(resource, name, namespace, spec=source | spec)

    async def serve(self, name: str, namespace: str = "") -> None:
        """Creates a service as the webhook marks it."""
        labels = {LOCAL_MODEL: name, **({LOCAL_MODEL_NAMESPACE: namespace} if namespace else {})}
        model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"{self.web.address}/{name}"}
        await self.create(INFERENCE_SERVICES, name, "default", labels=labels, spec={"predictor": {"model": model}})

    async def is_gone(self, resource: Resource, name: str, namespace: str = "") -> bool:
        try:
            await self.client.get(resource, name, namespace)
        except NotFound:
            return True
        return False


@pytest.fixture
def server() -> Iterator[AuditedServer]:
    running = AuditedServer()
    yield running
    running.stop()


@pytest.fixture
async def story(server: AuditedServer, tmp_path: Path) -> AsyncIterator[Story]:
    async with Client.connect(kubeconfig.load(server.cluster.kubeconfig)) as client:
        await definitions.install(client, *map(definitions.ours, KINDS))
        for name in (SYSTEM, JOBS):
            await client.create(NAMESPACES, NAMESPACES.typed({"metadata": {"name": name}}))
        await configure(client, SYSTEM, jobNamespace=JOBS)
        account = rights.kubeconfig(server, "model node")
        node = ModelNode(client, account, JOBS, tmp_path, NODE_NAME, system_namespace=SYSTEM)
        await node.set_up()
        with site() as web:
            web.files = {f"/{name}": b"weights" for name in ("iris", "rose", "lily")}
            async with kubelet(client, tmp_path):
                yield Story(client, node, web)
        node.kill()


@contextlib.contextmanager
def manager(server: AuditedServer, folder: Path) -> Iterator[None]:
    flags = [f"--webhook-port={free_port()}", "--leader-elect", "--metrics-addr=0", "--health-probe-addr=0"]
    env = {**os.environ, "KUBECONFIG": str(rights.kubeconfig(server, "localmodel")), "POD_NAMESPACE": SYSTEM}
    with (folder / "manager.log").open("wb") as log:
        process = subprocess.Popen([BIN / "localmodel-manager", *flags], env=env, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.skipif(not FOLDER.is_dir(), reason=f"what starts the server lies beside the recorded cases in {FOLDER}")
async def test_every_right_is_used_and_none_is_missing(server: AuditedServer, story: Story, tmp_path: Path):
    client, node = story.client, story.node
    with manager(server, tmp_path):
        node.start()
        await _add_node(story)
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


async def _add_node(story: Story) -> None:
    await story.create(NODES, story.node.name, labels={"pool": "models"})
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    await story.client.patch(NODES, story.node.name, ready, subresource="status")
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["models"]}]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
    await story.client.patch(LOCAL_MODEL_NODE_GROUPS, story.node.group, {"spec": {"persistentVolumeSpec": affinity}})


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
