"""Nodes, which whoever runs them creates together with their status."""

from __future__ import annotations

import uuid

from isvc.kube.resource import NODES


async def test_a_node_is_created_with_its_status_and_allots_all_it_has(client):
    name = f"node-{uuid.uuid4().hex[:8]}"
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"capacity": {"cpu": "8", "memory": "64Gi"}, "conditions": [condition]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
    live = await client.create(NODES, node)
    try:
        assert live["status"]["capacity"] == {"cpu": "8", "memory": "64Gi"}
        assert live["status"]["allocatable"] == {"cpu": "8", "memory": "64Gi"}
        assert live["status"]["conditions"][0]["type"] == "Ready"
        again = await client.update(NODES, {**live, "status": {"capacity": {"cpu": "1"}}})
        assert again["status"] == live["status"]  # from then on it has its own subresource
    finally:
        await client.delete(NODES, name)
