"""Ports of this machine for the ports of pods: many pods listen on 8080, and there is only one 8080 here."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterable

from isvc.kube.objects import Object, annotations_of

PORTS_ANNOTATION = "local.isvc.dev/ports"


class Ports:
    def __init__(self) -> None:
        self._taken: set[int] = set()

    def allocate(self, wanted: Iterable[int]) -> dict[int, int]:
        """A free local port for each container port."""
        return {port: self._free() for port in wanted}

    def release(self, ports: Iterable[int]) -> None:
        self._taken.difference_update(ports)

    def _free(self) -> int:
        while True:
            with contextlib.closing(socket.socket()) as probe:
                probe.bind(("", 0))
                port: int = probe.getsockname()[1]
            if port not in self._taken:
                self._taken.add(port)
                return port


def local_ports(pod: Object) -> dict[int, int]:
    """Container port → local port, as the node wrote it on the pod."""
    try:
        told = json.loads(annotations_of(pod).get(PORTS_ANNOTATION, "{}"))
        return {int(port): int(local) for port, local in told.items()}
    except (ValueError, AttributeError):
        return {}
