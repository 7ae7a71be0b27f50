"""The node: every pod that is bound to it, or to nobody yet, gets a worker.

At its start it registers with the API server and takes up the pods it finds, whose processes are started anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import platform
import shutil
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from isvc.kube.errors import AlreadyExists, ApiError
from isvc.kube.objects import Object, annotations_of, dig, is_being_deleted, name_of, namespace_of, uid_of
from isvc.kube.pods import is_terminal
from isvc.kube.resource import CONFIG_MAPS, NODES, PODS, SECRETS, Resource
from isvc.kube.schemas import RELEASE
from isvc.kube.timestamps import timestamp
from isvc.local.node.capacity import architecture, capacity, node_labels
from isvc.local.node.containers.sandbox import Sandbox
from isvc.local.node.kubelet_api.server import Kubelet
from isvc.local.node.kubelet_api.summary import summary
from isvc.local.node.pods.ephemeral import refuse_in_ended
from isvc.local.node.pods.node_services import Drain, NodeServices
from isvc.local.node.pods.pod import PodWorker
from isvc.local.node.pods.ports import Ports
from isvc.local.node.processes.logs import log_file
from isvc.local.node.processes.process import Reaper
from isvc.local.node.processes.usage import UsageMeter
from isvc.local.node.programs.images import ImageTable
from isvc.local.node.programs.warm import WarmServers
from isvc.local.node.volumes.files import mounts
from isvc.local.node.volumes.tokens import api_server_env
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.reads import Read
from isvc.toolkit.recorder import Recorder
from isvc.toolkit.tasks import Background

log = logging.getLogger("isvc.node")

NODE_NAME = "local"
_VERSION = f"{RELEASE}+isvc"  # which programs read that ask what a node can do
_GRACE_AT_STOP = 3.0
MIRROR = "kubernetes.io/config.mirror"  # the annotation of a pod that shows what runs already
_NOT_READY = "node.kubernetes.io/not-ready"


async def _no_drain(ports: list[int], seconds: float) -> None:
    return None


class Node:
    def __init__(
        self,
        client: Client,
        cache: Cache,
        recorder: Recorder,
        home: Path,
        *,
        pki: Path,
        reaper: Reaper,
        warm: WarmServers,
        env: Mapping[str, str] | None = None,
        drain: Drain = _no_drain,
        simulate: bool = False,
        sandbox: Sandbox | None = None,
        own_logs: Mapping[tuple[str, str], Path] | None = None,
    ) -> None:
        """`own_logs` are files that are shown as the logs of mirror pods, by namespace and name."""
        self._client = client
        self._cache = cache
        self._workers: dict[str, PodWorker] = {}
        self._ending = Background()
        self._clock = SystemClock()
        self._services = NodeServices(
            name=NODE_NAME,
            home=home,
            client=client,
            clock=self._clock,
            recorder=recorder,
            images=ImageTable(home / "images.yaml"),
            reaper=reaper,
            warm=warm,
            ports=Ports(),
            env={**(env or {}), **api_server_env(client.config.server)},
            drain=drain,
            opened=asyncio.Event(),
            simulate=simulate,
            sandbox=sandbox,
        )
        self._meter = UsageMeter(self._first_processes)
        self.kubelet = Kubelet(
            self.find, self._find_log, lambda: summary(NODE_NAME, self._workers.values(), self._meter), pki, own_logs
        )
        cache.declare("node", Read(PODS), Read(CONFIG_MAPS), Read(SECRETS))
        cache.subscribe(PODS, self._on_pod_change)
        for resource in (CONFIG_MAPS, SECRETS):
            cache.subscribe(resource, partial(self._contents_changed, resource))

    def find(self, namespace: str, name: str) -> PodWorker | None:
        for worker in self._workers.values():
            if name_of(worker.pod) == name and namespace_of(worker.pod) == namespace:
                return worker
        return None

    def _find_log(self, namespace: str, name: str, container: str, before_restart: bool) -> Path | None:
        """Returns what a container wrote that this node has not started: of a pod that ended before it, say."""
        pod = self._cache.get(PODS, name, namespace)
        if pod is None:
            return None
        fields = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
        statuses = [each for field in fields for each in dig(pod, "status", field) or ()]
        restarts = next((each["restartCount"] for each in statuses if each["name"] == container), 0)
        path = log_file(self._services.pods / uid_of(pod), container, restarts - before_restart)
        return path if path.exists() else None

    def _first_processes(self) -> Iterator[int]:
        """Yields the first process of every container that runs."""
        return (each.pid for worker in self._workers.values() for each in worker.containers if each.pid)

    async def start(self) -> None:
        await self.kubelet.start()
        await self._register()
        self._meter.start()

    async def stop(self) -> None:
        workers, self._workers = list(self._workers.values()), {}
        await self._meter.stop()
        await asyncio.gather(*(worker.abandon(_GRACE_AT_STOP) for worker in workers))
        for task in self._ending.copy():
            task.cancel()
        await self.kubelet.stop()

    def open(self) -> None:
        """Lets pods start, now that all else has: fifty model servers at once leave it no time."""
        self._forget_folders()
        self._services.opened.set()

    def expect_files(self, folder: Path, filling: asyncio.Task[None]) -> None:
        """Has pods whose claim is this folder wait for the task that fills it."""
        self._services.filling[folder] = filling
        filling.add_done_callback(lambda _: self._services.filling.pop(folder))

    def _forget_folders(self) -> None:
        """Removes folders of pods that no longer exist, which only a cache in step with the API server shows."""
        known = {uid_of(pod) for pod in self._cache.list(PODS)}
        for folder in self._services.pods.glob("*"):
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)

    def _on_pod_change(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            worker = self._workers.pop(uid_of(before or {}), None)
            if worker is not None:
                self._ending.start(worker.vanish())
            return
        worker = self._workers.get(uid_of(after))
        if worker is not None:
            worker.update(after)
        elif self._is_ours(after):
            worker = self._workers[uid_of(after)] = PodWorker(after, self._services)
            if is_being_deleted(after):
                worker.terminate()
            else:
                worker.start()
        elif dig(after, "spec", "ephemeralContainers") and dig(after, "spec", "nodeName") == NODE_NAME:
            self._ending.start(self._refuse_ephemeral(after))

    async def _refuse_ephemeral(self, ended: Object) -> None:
        with contextlib.suppress(ApiError, ClusterError):
            await refuse_in_ended(ended, self._services.pods / uid_of(ended), self._client, self._clock)

    def _contents_changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        if after is None:  # pods wait for what is missing, and keep what went
            return
        for worker in self._workers.values():
            if worker.containers and mounts(worker.pod, resource, after):
                self._ending.start(worker.renew_volumes())

    def _is_ours(self, pod: Object) -> bool:
        if MIRROR in annotations_of(pod):
            return False
        if is_terminal(pod):
            return is_being_deleted(pod) and dig(pod, "spec", "nodeName") == NODE_NAME
        return (dig(pod, "spec", "nodeName") or NODE_NAME) == NODE_NAME

    async def _register(self) -> None:
        node = node_object(self.kubelet.port, timestamp(self._clock.now()))
        with contextlib.suppress(AlreadyExists):
            await self._client.create(NODES, node)
        status = {"status": node["status"]}
        await self._untaint(await self._client.patch(NODES, NODE_NAME, status, subresource="status"))

    async def _untaint(self, node: Object) -> None:
        """Does what a cluster's node controller does once a node is ready; taints of others stay."""
        taints = dig(node, "spec", "taints") or []
        left = [taint for taint in taints if taint["key"] != _NOT_READY]
        if left != taints:
            await self._client.patch(NODES, NODE_NAME, {"spec": {"taints": left}})


def node_object(port: int, now: str) -> Object:
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "isvc runs pods as processes"}
    return NODES.manifest(
        {"name": NODE_NAME, "labels": node_labels(NODE_NAME)},
        spec={},
        status={
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": NODE_NAME}],
            "capacity": capacity(),
            "allocatable": capacity(),
            "conditions": [{**condition, "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": platform.release(),
                "osImage": platform.platform(terse=True),
                "containerRuntimeVersion": "process://1",
                "kubeletVersion": _VERSION,
                "kubeProxyVersion": _VERSION,
                "operatingSystem": platform.system().lower(),
                "architecture": architecture(),
            },
        },
    )
