"""Model servers that are forked: what a program of its own would be, also after the process that forks them died."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.ports import free_port

from isvc.local.node.processes.logs import Log
from isvc.local.node.processes.process import Process, Reaper, is_alive
from isvc.local.node.programs.warm import ForkedServer, WarmServers, framework_of

SERVER = [sys.executable, "-m", "isvc.pods.modelserver", "--host=127.0.0.1"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        (["--framework=sklearn", "--model_dir=/m"], {}, "sklearn"),
        (["--framework=xgboost"], {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}, "xgboost"),
        (["--framework=torch"], {}, None),
        (["--model_class=a.py:A"], {}, None),
        (["--framework=sklearn", "--model_class=a.py:A"], {}, None),
        (["--framework=sklearn"], {"PYTHONPATH": "/mine"}, None),
        (["--framework=sklearn"], {"PYTHONUNBUFFERED": "1", "HOME": "/h"}, "sklearn"),
        (["--framework=sklearn"], {"LD_PRELOAD": "/mine.so"}, None),
    ],
)
def test_what_can_be_forked(words, env, expected):
    assert framework_of([*SERVER, *words], env) == expected
    assert framework_of(["python", *words], env) is None


class Node:
    """Starts model servers as a node does, and keeps what they say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.reaper = Reaper(folder / "reaper")
        self.reaper.start()
        self.warm = WarmServers(self.reaper)

    async def start(self, model_dir: Path, **env: str) -> Process:
        command = [*SERVER, "--framework=sklearn", f"--model_dir={model_dir}", f"--http_port={free_port()}"]
        env = {"PATH": os.environ["PATH"], **env}
        return await Process.start(
            command, env, self.folder, Log(self.folder / "log"), self.reaper, fork=self.warm.fork
        )

    async def says(self, words: str) -> None:
        async with asyncio.timeout(60):
            while words not in (self.folder / "log").read_text():
                await asyncio.sleep(0.01)

    async def zygote(self) -> int:
        return (await self.warm._zygote("sklearn")).process.pid

    async def close(self) -> None:
        await self.warm.close()
        self.reaper.stop()


@pytest.fixture
async def node(tmp_path):
    import joblib
    from sklearn.dummy import DummyClassifier

    node = Node(tmp_path)
    joblib.dump(DummyClassifier().fit([[0], [1]], [0, 0]), tmp_path / "model.joblib")
    yield node
    await node.close()


async def test_a_fork_is_a_process_of_its_own(node, tmp_path):
    server = await node.start(tmp_path, GREETING="hello")
    assert isinstance(server._process, ForkedServer)
    await node.says("serving model")
    assert os.getsid(server.pid) == server.pid != os.getsid(await node.zygote())
    assert os.readlink(f"/proc/{server.pid}/cwd") == str(tmp_path)
    # Of the zygote's own files none is left, above all not its socket to the node.
    assert control_socket(await node.zygote()) not in files(server.pid)
    server.terminate()
    assert (await server.wait()).code == 0


def control_socket(pid: int) -> str:
    number = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[-2].decode()
    return os.readlink(f"/proc/{pid}/fd/{number}")


def files(pid: int) -> set[str]:
    return {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}


async def test_a_fork_that_fails_says_why_and_how_it_ended(node, tmp_path):
    last_words = tmp_path / "termination-log"
    last_words.touch()
    server = await node.start(tmp_path / "nothing", TERMINATION_MESSAGE_PATH=str(last_words))
    assert (await server.wait()).code == 1
    assert "nothing" in last_words.read_text()
    assert last_words.read_text() in (tmp_path / "log").read_text()


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


async def test_memory_of_the_framework_is_shared(node, tmp_path):
    servers = [await node.start(tmp_path) for _ in range(3)]
    await node.says("serving model")
    resident, proportional = memory(servers[-1].pid)
    assert proportional < resident / 2
    await asyncio.gather(*(server.end() for server in servers))


def memory(pid: int) -> tuple[int, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = {line.split(":")[0]: int(line.split()[1]) for line in lines[1:]}
    return found["Rss"], found["Pss"]
