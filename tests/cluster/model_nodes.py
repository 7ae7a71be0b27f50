"""Nodes that keep models: `isvc-localmodel-node` as processes, and what runs their Jobs where there is no kubelet.

Job controller, claims and node are those of `isvc up`, on whichever API server the suite runs. All pods run on this
machine; a node of a name is a process and a folder of its own, and a LocalModelNodeGroup whose volume that folder is.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.programs import running_manager
from tests.unit.pods.storage_initializer.sites import Answer, Site
from tests.waiting import until

from isvc.api.model_downloads import ModelDownload, decode_downloads
from isvc.api.resources import LOCAL_MODEL_NODE_GROUPS, LOCAL_MODEL_NODES
from isvc.controllers.localmodelnode.disk import final_path, incoming_path
from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object
from isvc.kube.owners import controller_of
from isvc.kube.resource import CONFIG_MAPS, JOBS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from isvc.local.controllers import claims
from isvc.local.controllers.jobs import controller as jobs
from isvc.local.node.node import Node
from isvc.local.node.processes.process import Reaper
from isvc.local.node.programs.warm import WarmServers
from isvc.serving.storage.uris import storage_key
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Watch
from isvc.toolkit.manager import Manager
from isvc.toolkit.recorder import Recorder

WEIGHTS = bytes(range(256)) * (1 << 14)  # 4 MiB
DEADLINE = 120.0
PROGRAM = (sys.executable, "-P", "-c", "from isvc.programs.localmodel_node import main; main()")


@contextlib.asynccontextmanager
async def kubelet(client: Client, home: Path) -> AsyncIterator[None]:
    """Runs the pods of Jobs as processes."""
    cache, clock, reaper = Cache(client), SystemClock(), Reaper(home / "processes")
    recorder, warm = Recorder(client, "test", clock), WarmServers(reaper)
    context = Context(client, cache, recorder, clock)
    node = Node(client, cache, recorder, home, pki=home, reaper=reaper, warm=warm)
    controllers = [jobs.controller(context), claims.controller(context), _garbage_collector(context)]
    reaper.start()
    try:
        async with running_manager(Manager(client, cache, controllers=controllers, services=[recorder])):
            node.open()
            yield
            await node.stop()
            await warm.close()
    finally:
        reaper.stop()


def _garbage_collector(context: Context) -> Controller:
    """Deletes pods whose Job is gone: kube-apiserver has nobody who does so."""

    async def reconcile(key: Key) -> None:
        pod = context.cache.get(PODS, key.name, key.namespace)
        owner = controller_of(pod or {}) or {}
        if pod is None or owner.get("kind") != JOBS.kind:
            return
        if context.cache.get(JOBS, owner["name"], key.namespace) is None:
            with contextlib.suppress(NotFound):
                await context.client.delete(PODS, key.name, key.namespace)

    def pods_of(job: Object) -> Iterable[Key]:
        return context.cache.all_keys(PODS, job["metadata"]["namespace"])

    watches = [Watch(JOBS, to=pods_of, when=lambda before, after: after is None)]
    return Controller("garbage-collector", reconcile, watches)


@dataclass
class ModelNode:
    """A node that keeps models, its program, and its disk."""

    client: Client
    kubeconfig: Path
    namespace: str
    home: Path
    name: str
    limit: str = "1Gi"
    system_namespace: str = ""
    process: subprocess.Popen[bytes] | None = None

    @property
    def group(self) -> str:
        return f"group-{self.name}"

    @property
    def folder(self) -> Path:
        return self.home / "disk" / self.name

    @property
    def log(self) -> Path:
        return self.home / f"{self.name}.log"

    def model(self, source: str) -> Path:
        return self.folder / final_path(storage_key(source))

    def incoming(self, source: str) -> Path:
        return self.folder / incoming_path(storage_key(source))

    async def set_up(self) -> None:
        volume = {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": f"/{self.name}"},
            "storageClassName": "local",
        }
        claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        spec = {
            "storageLimit": self.limit,
            "persistentVolumeSpec": volume,
            "persistentVolumeClaimSpec": {**claim, "storageClassName": "local"},
        }
        group = LOCAL_MODEL_NODE_GROUPS.typed({"metadata": {"name": self.group}, "spec": spec})
        await self.client.create(LOCAL_MODEL_NODE_GROUPS, group)

    async def list_models(self, **entries: str | Object) -> None:
        """Makes the node's list, and volumes and claims for downloads, as the controllers of caches do."""
        models = []
        for name, entry in entries.items():
            given: Object = {"sourceModelUri": entry} if isinstance(entry, str) else entry
            models.append({"modelName": name, "nodeGroup": self.group, **given})
            await self._claim(f"{name}-{self.group}")
        try:
            await self.client.patch(LOCAL_MODEL_NODES, self.name, {"spec": {"localModels": models}})
        except NotFound:
            made = {"metadata": {"name": self.name}, "spec": {"localModels": models}}
            await self.client.create(LOCAL_MODEL_NODES, LOCAL_MODEL_NODES.typed(made))

    async def _claim(self, name: str) -> None:
        if await self.client.find(PERSISTENT_VOLUME_CLAIMS, name, self.namespace) is None:
            group = (await self.client.get(LOCAL_MODEL_NODE_GROUPS, self.group))["spec"]
            volume = {"metadata": {"name": f"{name}-download"}, "spec": group["persistentVolumeSpec"]}
            await self.client.create(PERSISTENT_VOLUMES, PERSISTENT_VOLUMES.typed(volume))
            spec = {**group["persistentVolumeClaimSpec"], "volumeName": f"{name}-download"}
            claim = {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec}
            await self.client.create(PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUME_CLAIMS.typed(claim))

    def start(self, *prefix: str, folder: Path | None = None, host_path: str = "") -> None:
        flags = ["--metrics-addr=0", "--health-probe-addr=0", f"--models-folder={folder or self.folder}"]
        env = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "NODE_NAME": self.name}
        env["POD_NAMESPACE"] = self.system_namespace or self.namespace
        env["MODELS_HOST_PATH"] = host_path or f"/{self.name}"
        with self.log.open("ab") as log:
            command = [*prefix, *PROGRAM, *flags]
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    async def read(self) -> Object:
        return await self.client.get(LOCAL_MODEL_NODES, self.name)

    async def download(self, name: str) -> ModelDownload:
        return decode_downloads(await self.read()).get(name) or ModelDownload()

    async def phase(self, name: str) -> str:
        return str(((await self.read()).get("status") or {}).get("modelStatus", {}).get(name, ""))

    async def until(self, name: str, phase: str) -> ModelDownload:
        async def reached() -> bool:
            return await self.phase(name) == phase and (await self.download(name)).phase == phase

        try:
            await until(reached, f"{name} on {self.name} is {phase}", DEADLINE)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self.read()}\n{self.log.read_text()}") from None
        return await self.download(name)

    async def jobs(self) -> list[Object]:
        found = (await self.client.list(JOBS, self.namespace)).items
        return [job for job in found if job["metadata"]["labels"]["node"] == self.name]

    async def tear_down(self) -> None:
        self.kill()
        for resource, name in ((LOCAL_MODEL_NODES, self.name), (LOCAL_MODEL_NODE_GROUPS, self.group)):
            with contextlib.suppress(NotFound):
                await self.client.delete(resource, name)
        for job in await self.jobs():
            await self.client.delete(JOBS, job["metadata"]["name"], self.namespace, propagation="Background")


MakeNode = Callable[..., Awaitable[ModelNode]]


class Stall:
    """Lets a server send the first half of a file, and the rest when it is told to."""

    def __init__(self, web: Site) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()
        web.spoil = self

    def __call__(self, answer: Answer) -> bool:
        content = answer.site.files[answer.path]
        if self.go_on.is_set() or answer.command == "HEAD":
            return False
        answer.send_response(200)
        answer.send_header("Content-Length", str(len(content)))
        answer.send_header("ETag", '"one"')
        answer.send_header("Content-Type", "application/octet-stream")
        answer.end_headers()
        answer.wfile.write(content[: len(content) // 2])
        answer.wfile.flush()
        self.reached.set()
        self.go_on.wait(120)
        answer.close_connection = True
        return True


async def configure(client: Client, namespace: str, **settings: Any) -> None:
    """Writes the configuration; downloads run in the namespace of the test."""
    sections = {
        "localModel": {"enabled": True, "jobNamespace": namespace, **settings},
        "storageInitializer": {"image": "kserve/storage-initializer:latest"},
        "credentials": {
            "storageSpecSecretName": "storage-config",
            "s3": {"s3AccessKeyIDName": "AWS_ACCESS_KEY_ID", "s3SecretAccessKeyName": "AWS_SECRET_ACCESS_KEY"},
        },
    }
    metadata = {"name": "inferenceservice-config", "namespace": namespace}
    data = {name: json.dumps(section) for name, section in sections.items()}
    await client.create(CONFIG_MAPS, CONFIG_MAPS.typed({"metadata": metadata, "data": data}))


async def gone(path: Path) -> None:
    await until(lambda: not path.exists(), f"{path} to be gone", DEADLINE)
