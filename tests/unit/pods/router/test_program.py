"""The router as a process: its start, its end, and peers that behave badly."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from tests.ports import free_port
from tests.waiting import until

ECHO = '{"nodes":{"root":{"routerType":"Sequence","steps":[]}},"routerTimeouts":{"serverRead":1}}'


@asynccontextmanager
async def _router(graph: str, *flags: str) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    port = free_port()
    command = [
        sys.executable,
        "-m",
        "isvc.pods.router",
        "--host=127.0.0.1",
        f"--port={port}",
        "--graph-json",
        graph,
        *flags,
    ]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        await until(lambda: _status(port))
        yield process, port
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _status(port: int, path: str = "/readyz") -> int | None:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as response:
            return response.status
    except OSError:
        return None


async def test_it_serves_on_while_it_drains_and_then_ends() -> None:
    async with _router(ECHO, "--drain-seconds=1") as (process, port):
        process.send_signal(signal.SIGTERM)
        statuses: list[int | None] = []

        async def drained() -> bool:
            statuses.append(await _status(port))
            return statuses[-1] is None

        await until(drained)
        assert await process.wait() == 0
    assert 503 in statuses


async def test_a_request_that_never_ends_is_given_up() -> None:
    async with _router(ECHO) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
        assert b"408" in await asyncio.wait_for(reader.readline(), 30)
        writer.close()
        assert await _status(port) == 200


@pytest.mark.parametrize("graph", ["", "no json", "[]", '{"nodes":{"root":{"steps":3}}}'])
def test_a_graph_that_is_none_is_refused(graph: str) -> None:
    command = [sys.executable, "-m", "isvc.pods.router", "--graph-json", graph]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "--graph-json" in done.stderr
    assert "Traceback" not in done.stderr
