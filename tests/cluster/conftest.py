"""Nodes that keep models, and a web site that has some."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import definitions
from tests.cluster.model_nodes import WEIGHTS, MakeNode, ModelNode, configure, kubelet
from tests.servers import Cluster
from tests.unit.pods.storage_initializer.sites import Site, site

from isvc.api.resources import (
    CLUSTER_STORAGE_CONTAINERS,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.toolkit.client import Client


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as made:
        made.files = {"/iris/model.bin": WEIGHTS, "/rose/model.bin": WEIGHTS[::-1]}
        yield made


@pytest.fixture
async def make_node(client: Client, cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[MakeNode]:
    """Makes nodes of a cluster that can run Jobs. Their programs have not started."""
    kinds = (
        LOCAL_MODEL_NODES,
        LOCAL_MODEL_NODE_GROUPS,
        LOCAL_MODEL_CACHES,
        LOCAL_MODEL_NAMESPACE_CACHES,
        CLUSTER_STORAGE_CONTAINERS,
    )
    await definitions.install(client, *map(definitions.ours, kinds))
    await configure(client, namespace)
    made: list[ModelNode] = []

    async def make(name: str = "a", **given: Any) -> ModelNode:
        node = ModelNode(client, cluster.kubeconfig, namespace, tmp_path, f"{name}-{namespace[-8:]}", **given)
        await node.set_up()
        made.append(node)
        return node

    async with kubelet(client, tmp_path):
        yield make
        for node in made:
            await node.tear_down()
