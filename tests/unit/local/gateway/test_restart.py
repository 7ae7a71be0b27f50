"""Envoy dies: what was under way is lost, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from tests.unit.local.gateway.conftest import running_gateway
from tests.unit.local.gateway.raw import named
from tests.waiting import until

from isvc.local.child import DidNotStart
from isvc.local.gateway.envoy.bootstrap import Front


@pytest_asyncio.fixture(loop_scope="session")
async def mortal(tmp_path, sites):
    """A gateway of a test's own."""
    async with running_gateway(tmp_path, Front()) as cluster:
        await cluster.service("s", (await sites(named("served")), True))
        await cluster.route("h.test", ("s", 1))
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def _keeping(mortal):
    """Starts its Envoy again when it dies."""
    keeping = asyncio.create_task(mortal.gateway.envoy.child.keep_running())
    yield
    keeping.cancel()


def kill(mortal) -> int:
    pid = mortal.gateway.envoy.child.pid
    os.kill(pid, signal.SIGKILL)
    return pid


def is_stopped(pid: int) -> bool:
    return all(") T " in each.read_text() for each in Path(f"/proc/{pid}/task").glob("*/stat"))


def is_replaced(mortal, dead: int) -> bool:
    return mortal.gateway.envoy.child.pid != dead


@pytest.mark.usefixtures("_keeping")
async def test_a_request_that_comes_while_envoy_is_away_waits_for_the_next_one(mortal):
    began: dict[int, float] = {}
    failed: dict[int, str] = {}
    loop, ended, died = asyncio.get_running_loop(), False, 0.0
    url = f"http://127.0.0.1:{mortal.port}/"

    async def ask(session: aiohttp.ClientSession, number: int) -> None:
        began[number] = loop.time()
        try:
            async with session.get(url, headers={"Host": "h.test"}) as answer:
                assert (answer.status, await answer.text()) == (200, "served")
        except aiohttp.ClientError as error:
            failed[number] = repr(error)

    async def keep_asking(first: int) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
            for number in range(first, 1_000_000, 8):
                if ended:
                    return
                await ask(session, number)

    clients = [asyncio.create_task(keep_asking(first)) for first in range(8)]

    async def next_requests() -> None:
        enough = len(began) + 100
        await until(lambda: len(began) >= enough, "requests")

    for _ in range(3):
        await next_requests()
        dead = kill(mortal)
        died = loop.time()
        await until(partial(is_replaced, mortal, dead), "another Envoy")
        assert [reason for number, reason in failed.items() if began[number] > died] == []
    await next_requests()
    ended = True
    await asyncio.gather(*clients)
    assert [reason for number, reason in failed.items() if began[number] > died] == []


@pytest.mark.usefixtures("_keeping")
async def test_connections_that_envoy_has_not_accepted_when_it_dies_are_those_of_the_next_one(mortal):
    pid = mortal.gateway.envoy.child.pid
    os.kill(pid, signal.SIGSTOP)
    await until(partial(is_stopped, pid), "a stop")
    clients = [await asyncio.open_connection("127.0.0.1", mortal.port) for _ in range(20)]
    for _, writer in clients:
        writer.write(b"GET / HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\n\r\n")
    kill(mortal)
    answers = [await reader.read() for reader, _ in clients]
    assert [answer.rpartition(b"\r\n")[2] for answer in answers] == [b"served"] * 20


@pytest.mark.usefixtures("_keeping")
async def test_what_changes_while_envoy_is_away_is_known_to_the_next_one(mortal, sites):
    kill(mortal)
    await mortal.service("other", (await sites(named("other")), True))
    await mortal.route("h.test", ("other", 1))
    async with aiohttp.ClientSession() as session:
        answer = await session.get(f"http://127.0.0.1:{mortal.port}/", headers={"Host": "h.test"})
        assert await answer.text() == "other"


async def test_an_envoy_that_does_not_start_is_not_started_for_ever(mortal):
    (mortal.gateway._folder / "bootstrap.json").write_text("{")
    kill(mortal)
    with pytest.raises(DidNotStart, match="the gateway's Envoy ended"):
        await asyncio.wait_for(mortal.gateway.envoy.child.keep_running(), 60)
