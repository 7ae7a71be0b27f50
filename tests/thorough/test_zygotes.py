"""Processes that fork model servers: they end when nobody needs them, share their memory, and may be killed."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from tests.unit.local.node.programs.test_warm import node, pytestmark

from isvc.local.node.processes.process import is_alive
from isvc.local.node.programs.warm import ForkedServer, WarmServers

__all__ = ["node", "pytestmark"]


async def test_a_zygote_ends_when_nothing_has_used_it_for_a_while(node, tmp_path):
    node.warm = WarmServers(node.reaper, idle_seconds=0.05)
    server = await node.start(tmp_path)
    zygote = await node.zygote()
    await node.says("serving model")
    assert is_alive(zygote), "it ended before its server"
    server.terminate()
    assert (await server.wait()).code == 0
    async with asyncio.timeout(60):
        while is_alive(zygote) or any((tmp_path / "reaper").iterdir()):
            await asyncio.sleep(0.01)


async def test_servers_outlive_the_zygote_and_the_next_one_starts_all_the_same(node, tmp_path):
    first = await node.start(tmp_path)
    await node.says("serving model")
    os.kill(await node.zygote(), signal.SIGKILL)
    second = await node.start(tmp_path)
    assert first.memory() > 0
    for server in (first, second):
        server.kill()
        await server.wait()
    third = await node.start(tmp_path)
    assert isinstance(third._process, ForkedServer)
    await third.end()
    assert [path.name for path in (tmp_path / "reaper").iterdir()] == [str(await node.zygote())]


async def test_a_server_starts_though_the_zygote_dies_while_it_imports(node, tmp_path):
    zygote = await node.zygote()
    os.kill(zygote, signal.SIGSTOP)  # wherever its imports are by now
    starting = asyncio.create_task(node.start(tmp_path))
    async with asyncio.timeout(60):
        while not node.warm._zygote._asked:
            await asyncio.sleep(0.01)
    os.kill(zygote, signal.SIGKILL)
    server = await starting
    await node.says("serving model")
    await server.end()


async def test_memory_of_frameworks_is_shared_by_servers_of_all_of_them(node, tmp_path):
    (tmp_path / "MLmodel").write_text("flavors: {sklearn: {pickled_model: model.joblib}}")
    servers = [await node.start(tmp_path, framework) for framework in ("sklearn", "sklearn", "mlflow")]
    async with asyncio.timeout(60):
        while (tmp_path / "log").read_text().count("serving model") < len(servers):
            await asyncio.sleep(0.01)
    resident, proportional = memory(servers[-1].pid)
    assert proportional < resident / 2
    await asyncio.gather(*(server.end() for server in servers))


def memory(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return found["Rss"], found["Pss"]
