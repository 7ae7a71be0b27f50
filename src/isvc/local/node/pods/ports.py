"""Ports of this machine for the ports of pods: many pods listen on 8080, and there is only one 8080 here."""

from __future__ import annotations

import contextlib
import json
import random
import socket
from collections import deque
from collections.abc import Iterable, Mapping

from isvc.kube.objects import Object, annotations_of, dig, name_of, namespace_of, uid_of
from isvc.kube.resource import PODS
from isvc.toolkit.client import Client

PORTS_ANNOTATION = "local.isvc.dev/ports"


# Below the range from which systems take the ports of outgoing connections: those would be gone before a model server,
# which first loads its model, comes to listen.
_FIRST, _LAST, _BLOCK = 20_000, 29_999, 100


class Ports:
    """Hands out ports of blocks that are its own: who is bound to the first port of a block has all of it.

    Otherwise two homes on one machine could give the same port, each before the server that is to listen there does.
    """

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._candidates: deque[int] = deque()
        self._guards: list[socket.socket] = []

    def allocate(self, wanted: Iterable[int]) -> dict[int, int]:
        """Returns a free local port for each container port."""
        return {port: self.one() for port in wanted}

    def release(self, ports: Iterable[int]) -> None:
        self._taken.difference_update(ports)

    def one(self) -> int:
        """Returns the next port that nobody has; one that was given back comes round last."""
        while True:
            for _ in range(len(self._candidates)):
                port = self._candidates[0]
                self._candidates.rotate(-1)
                if port not in self._taken and is_free(port):
                    self._taken.add(port)
                    return port
            self._claim_block()

    def _claim_block(self) -> None:
        blocks = range(_FIRST, _LAST, _BLOCK)
        for first in random.sample(blocks, len(blocks)):
            guard = socket.socket()
            try:
                guard.bind(("", first))  # without SO_REUSEADDR, so that nobody else can
            except OSError:
                guard.close()
                continue
            self._guards.append(guard)
            self._candidates.extendleft(reversed(range(first + 1, first + _BLOCK)))
            return
        raise OSError(f"no port from {_FIRST} to {_LAST} is free")


def is_free(port: int) -> bool:
    """Returns whether a server could listen there; connections that have just ended do not count."""
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def local_ports(pod: Object) -> dict[int, int]:
    """Returns the local port of each container port, as the node wrote it on the pod."""
    try:
        assigned = json.loads(annotations_of(pod).get(PORTS_ANNOTATION, "{}"))
        return {int(port): int(local) for port, local in assigned.items()}
    except (ValueError, AttributeError):
        return {}


async def bind(pod: Object, node: str, local_ports: Mapping[int, int], client: Client) -> None:
    """Claims a pod for this node, with its local ports in the annotation; a pod of this node gets that alone."""
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
