"""`isvc wait` while the API server is killed: it goes on when the server is back, and names it when it stays away."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest
from tests import definitions
from tests.ports import free_port
from tests.unit.apiserver.test_process import Process, process
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.cli.progress import Progress
from isvc.cli.wait import _wait_for
from isvc.kube.objects import Object
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.failure import ClusterError

__all__ = ["process"]

NOT_READY = "InferenceService default/iris"
SERVICE: Object = INFERENCE_SERVICES.typed({"metadata": {"name": "iris"}, "spec": {"predictor": {}}})
READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}


class Terminal(Progress):
    """What is shown meanwhile."""

    def __init__(self) -> None:
        super().__init__("")
        self.shown = ""

    def update(self, text: str) -> None:
        self.shown = text


async def begin_to_wait(client: Client, deadline: float) -> tuple[asyncio.Task[int], Terminal]:
    await definitions.install(client, definitions.ours(INFERENCE_SERVICES))
    await client.create(INFERENCE_SERVICES, SERVICE, "default")
    terminal = Terminal()
    waiting = asyncio.create_task(_wait_for(client, "default", "isvc/iris", deadline, terminal))
    await until(lambda: terminal.shown.startswith(NOT_READY), "the first look")
    return waiting, terminal


async def test_a_server_that_comes_back_is_asked_again(process: Process, capsys):
    port = str(free_port())
    await process.start("--port", port)
    async with Client.connect(kubeconfig.load(process.kubeconfig)) as client:
        waiting, terminal = await begin_to_wait(client, float("inf"))
        await process.end(signal.SIGKILL)
        await until(lambda: not terminal.shown.startswith(NOT_READY), "a look at no server")
        await process.start("--port", port)
        await client.patch(INFERENCE_SERVICES, "iris", READY, "default", subresource="status")
        assert await waiting == 0
    assert capsys.readouterr().out == "InferenceService default/iris is ready\n"


async def test_a_server_that_stays_away_is_named_in_the_end(process: Process, monkeypatch):
    await process.start("--ephemeral")
    async with Client.connect(kubeconfig.load(process.kubeconfig)) as client:
        waiting, terminal = await begin_to_wait(client, time.monotonic() + 3600)
        await process.end(signal.SIGKILL)
        await until(lambda: not terminal.shown.startswith(NOT_READY), "a look at no server")
        clock = time.monotonic
        monkeypatch.setattr("time.monotonic", lambda: clock() + 3600)
        with pytest.raises(ClusterError, match=process.url.removeprefix("https://")):
            await waiting
