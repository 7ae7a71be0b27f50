"""A cluster with a node that keeps models, and what people do there."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from tests import definitions
from tests.cluster.model_nodes import ModelNode, configure, kubelet
from tests.unit.pods.storage_initializer.sites import Site, site

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_NAMESPACE
from isvc.api.resources import (
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.kube.resource import NAMESPACES, NODES, Resource
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

    async def add_node(self) -> None:
        await self.create(NODES, self.node.name, labels={"pool": "models"})
        ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
        await self.client.patch(NODES, self.node.name, ready, subresource="status")
        terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["models"]}]}]
        affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}
        await self.client.patch(LOCAL_MODEL_NODE_GROUPS, self.node.group, {"spec": {"persistentVolumeSpec": affinity}})

    async def is_gone(self, resource: Resource, name: str, namespace: str = "") -> bool:
        return await self.client.find(resource, name, namespace) is None


@contextlib.asynccontextmanager
async def begin_story(
    administrator: Path, agent: Callable[[], Path], folder: Path, **settings: object
) -> AsyncIterator[Story]:
    """Prepares the cluster; `agent` makes the kubeconfig of the node's program, which has not started."""
    async with Client.connect(kubeconfig.load(administrator)) as client:
        await definitions.install(client, *map(definitions.ours, KINDS))
        for name in (SYSTEM, JOBS):
            await client.create(NAMESPACES, NAMESPACES.typed({"metadata": {"name": name}}))
        await configure(client, SYSTEM, jobNamespace=JOBS, **settings)
        node = ModelNode(client, agent(), JOBS, folder, NODE_NAME, system_namespace=SYSTEM)
        await node.set_up()
        with site() as web:
            web.files = {f"/{name}": b"weights" for name in ("iris", "rose", "lily")}
            async with kubelet(client, folder):
                yield Story(client, node, web)
        node.kill()
