"""Claims a pod for this node, with the local ports of its containers in an annotation that endpoints are made from."""

from __future__ import annotations

import json
from collections.abc import Mapping

from isvc.kube.objects import Object, annotations_of, dig, name_of, namespace_of, uid_of
from isvc.kube.resource import PODS
from isvc.local.node.pods.ports import PORTS_ANNOTATION
from isvc.toolkit.client import Client


async def bind(pod: Object, node: str, local_ports: Mapping[int, int], client: Client) -> None:
    """A pod that has this node already gets the annotation alone."""
    name, namespace = name_of(pod), namespace_of(pod)
    ports = json.dumps({str(port): local for port, local in local_ports.items()})
    if annotations_of(pod).get(PORTS_ANNOTATION) == ports:
        return
    if dig(pod, "spec", "nodeName"):
        patch = {"metadata": {"uid": uid_of(pod), "annotations": {PORTS_ANNOTATION: ports}}}
        await client.patch(PODS, name, patch, namespace)
        return
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "uid": uid_of(pod), "annotations": {PORTS_ANNOTATION: ports}},
        "target": {"kind": "Node", "name": node},
    }
    await client.request("POST", PODS.path(namespace, name, "binding"), body=binding)
