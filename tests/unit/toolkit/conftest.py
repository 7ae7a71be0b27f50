"""A small HTTP server that answers what a test tells it to: the API server at its worst."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from isvc.toolkit.client.kubeconfig import ClusterConfig


def always(response: web.Response) -> Callable[[web.Request], web.Response]:
    return lambda request: response


class Script:
    """Answers requests with the next response of a list (the last one again and again), and keeps what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.answers: list[Callable[[web.Request], Any]] = []
        self.requests: list[web.Request] = []

    def config(self, **changes: Any) -> ClusterConfig:
        return ClusterConfig(server=self.url, **changes)

    def will(self, *answers: Callable[[web.Request], Any] | web.Response) -> None:
        for answer in answers:
            self.answers.append(answer if callable(answer) else always(answer))

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        await request.read()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        response = answer(request)
        return await response if hasattr(response, "__await__") else response


@pytest.fixture
async def script() -> AsyncIterator[Script]:
    scripted = Script()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", scripted._serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    scripted.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield scripted
    await runner.cleanup()
