"""The worker of a pod on a laptop's node: a bug of ours ends neither its life nor its reports."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from datetime import datetime
from pathlib import Path

import pytest
from tests.manual_clock import ManualClock
from tests.waiting import until

from isvc.kube.objects import dig
from isvc.kube.resource import PODS
from isvc.local.node.node import NODE_NAME
from isvc.local.node.pods.node_services import NodeServices
from isvc.local.node.pods.pod import PodWorker
from isvc.local.node.pods.ports import Ports
from isvc.local.node.processes.process import Reaper
from isvc.local.node.programs.images import ImageTable
from isvc.local.node.programs.warm import WarmServers
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.recorder import Recorder


class FaultyClock(ManualClock):
    """One that does not know the time of day, so that no part of the worker comes to its end."""

    is_broken = False

    def now(self) -> datetime:
        if self.is_broken:
            raise OverflowError("date value out of range")
        return super().now()


def services(client: Client, clock: Clock, home: Path) -> NodeServices:
    async def drain(ports: list[int], seconds: float) -> None:
        clock.now()

    reaper = Reaper(home / "processes")
    return NodeServices(
        name=NODE_NAME,
        home=home,
        client=client,
        clock=clock,
        recorder=Recorder(client, "test", clock),
        images=ImageTable(home / "images.yaml"),
        reaper=reaper,
        warm=WarmServers(reaper),
        ports=Ports(),
        env={},
        drain=drain,
        opened=asyncio.Event(),
        simulate=True,
    )


async def test_what_failed_is_tried_again(client, namespace, tmp_path, caplog):
    spec = {"containers": [{"name": "server", "image": "example.com/no-program-here"}]}
    metadata = {"name": "life", "namespace": namespace}
    pod = await client.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    clock = FaultyClock()
    node = services(client, clock, tmp_path)
    worker = PodWorker(pod, node)

    async def is_running() -> bool:
        clock.advance(60)
        worker.update(stored := await client.get(PODS, "life", namespace))
        return dig(stored, "status", "phase") == "Running"

    async def is_gone() -> bool:
        clock.advance(60)
        return not (await client.list(PODS, namespace)).items

    async def fail(times: int) -> None:
        """Lets the worker fail so many times."""
        caplog.clear()
        clock.is_broken = True
        await until(lambda: has_failed(times))
        clock.is_broken = False

    def has_failed(times: int) -> bool:
        clock.advance(60)
        return len(caplog.records) >= times

    node.opened.set()
    worker.start()
    await fail(times=3)  # of the life and the status, at least
    await until(is_running)
    await client.delete(PODS, "life", namespace)
    worker.update(await client.get(PODS, "life", namespace))
    await fail(times=2)
    await until(is_gone)
    await worker.vanish()


SERVER = "import socket, sys; server = socket.create_server(('127.0.0.1', int(sys.argv[1]))); server.accept(); input()"


@pytest.mark.parametrize("image", ["example.com/no-program-here", "example.com/server"])
async def test_a_pod_that_is_gone_leaves_nothing_old_to_the_garbage_collector(client, namespace, tmp_path, image):
    """What is new, such as the traceback of a task's end, is soon looked at; what is older hardly ever."""
    table = {"images": {"example.com/server": {"command": ["python", "-c", SERVER, "{port}"]}}}
    (tmp_path / "images.yaml").write_text(json.dumps(table))
    server = {"name": "server", "image": image, "ports": [{"containerPort": 8080}], "stdin": True}
    server |= {"readinessProbe": {"tcpSocket": {"port": 8080}}, "resources": {"limits": {"memory": "1Gi"}}}
    metadata = {"name": "gone", "namespace": namespace}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [server]}}
    pod = await client.create(PODS, manifest)
    node = services(client, SystemClock(), tmp_path)
    worker = PodWorker(pod, node)

    async def is_ready() -> bool:
        return bool(dig(await client.get(PODS, "gone", namespace), "status", "containerStatuses", 0, "ready"))

    node.opened.set()
    worker.start()
    await until(is_ready)
    seen = weakref.ref(worker)
    gc.collect()
    gc.freeze()
    try:
        await worker.vanish()
        del worker
        await asyncio.sleep(0)  # what has waited for its tasks lets go of them
        gc.collect()
        assert seen() is None
    finally:
        gc.unfreeze()
