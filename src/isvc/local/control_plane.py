"""Shows the programs of `isvc up` where KServe's documentation looks for them: as pods and leases in its namespace.

The pods are mirrors, as a kubelet has them of static pods: nobody can start or end a program through them, but their
state and their logs are there. The leases say who leads; on one machine nobody else could, so nothing depends on them.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import PODS
from isvc.kube.timestamps import timestamp
from isvc.local.home import Home
from isvc.local.node.node import MIRROR, NODE_NAME
from isvc.programs.program import Program
from isvc.serving.environment import SYSTEM_NAMESPACE
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.election import Election
from isvc.toolkit.failure import ClusterError, NotLeader
from isvc.toolkit.tasks import cancel

_PLANE: Final = "control-plane"
_CONTAINER: Final = "manager"
_RENEW, _EXPIRE, _RETRY = 30.0, 45.0, 15.0  # seconds; laptops sleep, and disks with them


@dataclass(frozen=True, slots=True)
class Part:
    """A program of the control plane: what its pods are labelled with, and what it logs to."""

    name: str
    log: Path
    labels: Mapping[str, str]

    @property
    def pod(self) -> str:
        return f"{self.name}-{NODE_NAME}"


def parts_of(home: Home, programs: Iterable[Program]) -> list[Part]:
    """Returns the managers, whose labels are those of KServe's, then API server and gateway."""
    planes = [program.lease.removesuffix("-leader-lock") for program in programs]
    managers = [Part(plane, home.logs / "isvc.log", {_PLANE: plane}) for plane in planes]
    others = [Part(f"isvc-{name}", home.logs / f"{name}.log", {}) for name in ("apiserver", "gateway")]
    return [*managers, *others]


def logs_of(parts: Iterable[Part]) -> dict[tuple[str, str], Path]:
    """Returns the files that `kubectl logs` shows, by namespace and pod."""
    return {(SYSTEM_NAMESPACE, part.pod): part.log for part in parts}


class ControlPlane:
    def __init__(self, client: Client, parts: Iterable[Part], programs: Iterable[Program]) -> None:
        self._client = client
        self._parts = tuple(parts)
        identity = f"{socket.gethostname()}_isvc-up"  # the same after a crash: its own lease is no obstacle
        self._elections = [
            Election(
                client,
                program.lease,
                SYSTEM_NAMESPACE,
                identity=identity,
                lease_seconds=_EXPIRE,
                renew_seconds=_RENEW,
                retry_seconds=_RETRY,
            )
            for program in programs
        ]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(_keep(election)) for election in self._elections]
        self._tasks.append(asyncio.create_task(self._show()))

    async def stop(self) -> None:
        await cancel(*self._tasks)
        for election in self._elections:
            await election.release()
        for part in self._parts:
            await self._remove(part)

    async def _show(self) -> None:
        for part in self._parts:
            await self._remove(part)  # what an earlier start left when it was killed
            with contextlib.suppress(ApiError, ClusterError):
                await self._client.create(PODS, _manifest(part))
                status = {"status": _status(timestamp(SystemClock().now()))}
                await self._client.patch(PODS, part.pod, status, SYSTEM_NAMESPACE, subresource="status")

    async def _remove(self, part: Part) -> None:
        with contextlib.suppress(ApiError, ClusterError):
            await self._client.delete(PODS, part.pod, SYSTEM_NAMESPACE, grace_seconds=0)


async def _keep(election: Election) -> None:
    while True:
        with contextlib.suppress(NotLeader):
            await election.acquire()
            await election.hold()


def _manifest(part: Part) -> Object:
    labels = {"app.kubernetes.io/name": part.name, "app.kubernetes.io/part-of": "isvc", **part.labels}
    metadata = {"name": part.pod, "namespace": SYSTEM_NAMESPACE, "labels": labels, "annotations": {MIRROR: part.name}}
    container = {"name": _CONTAINER, "image": "isvc"}
    spec = {"nodeName": NODE_NAME, "hostNetwork": True, "containers": [container], "restartPolicy": "Always"}
    return PODS.manifest(metadata, spec=spec)


def _status(now: str) -> Object:
    conditions = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    container = {
        "name": _CONTAINER,
        "image": "isvc",
        "imageID": "",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": now}},
    }
    return {
        "phase": "Running",
        "podIP": "127.0.0.1",
        "hostIP": "127.0.0.1",
        "startTime": now,
        "conditions": [{"type": each, "status": "True", "lastTransitionTime": now} for each in conditions],
        "containerStatuses": [container],
    }
