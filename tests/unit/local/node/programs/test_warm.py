"""Model servers that are forked: what a program of its own would be, also after the process that forks them died."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from pathlib import Path

import pytest
from tests.ports import free_port

from isvc.local.node.processes.logs import Log
from isvc.local.node.processes.process import Process, Reaper, is_alive
from isvc.local.node.programs import warm, zygote
from isvc.local.node.programs.images import ImageTable
from isvc.local.node.programs.warm import ForkedServer, WarmServers, framework_of

SERVER = [sys.executable, "-m", "isvc.pods.modelserver", "--host=127.0.0.1"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        (["--framework=sklearn", "--model_dir=/m"], {}, "sklearn"),
        (["--framework=xgboost"], {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}, "xgboost"),
        (["--framework=mlflow"], {}, "mlflow"),
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

    async def start(self, model_dir: Path, framework: str = "sklearn", **env: str) -> Process:
        command = [*SERVER, f"--framework={framework}", f"--model_dir={model_dir}", f"--http_port={free_port()}"]
        env = {"PATH": os.environ["PATH"], **env}
        return await Process.start(
            command, env, self.folder, Log(self.folder / "log"), self.reaper, fork=self.warm.fork
        )

    async def says(self, words: str) -> None:
        async with asyncio.timeout(60):
            while words not in (self.folder / "log").read_text():
                await asyncio.sleep(0.01)

    async def zygote(self) -> int:
        return (await self.warm._start()).process.pid

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


def command_of(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def has_loaded(library: str, pid: int) -> bool:
    return library in Path(f"/proc/{pid}/maps").read_text()


def control_socket(pid: int) -> str:
    number = command_of(pid)[-2].decode()
    return os.readlink(f"/proc/{pid}/fd/{number}")


def files(pid: int) -> set[str]:
    return {os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()}


async def test_frameworks_are_imported_ahead_of_need_and_let_go_again(node, tmp_path):
    pod = {"spec": {"containers": [{"image": "kserve/sklearnserver:v1"}, {"image": "nobody/knows"}]}}
    await node.warm.prepare_for(pod, ImageTable(tmp_path / "images.yaml"))
    [ahead] = [int(path.name) for path in (tmp_path / "reaper").iterdir()]
    async with asyncio.timeout(60):
        while not has_loaded("/sklearn/", ahead):
            await asyncio.sleep(0.01)
    await node.warm.close()  # does not wait for what it has not imported yet
    assert not is_alive(ahead)


async def test_nothing_is_imported_ahead_where_memory_is_short(node, tmp_path, monkeypatch):
    monkeypatch.setattr(warm, "_ROOM", 1 << 60)
    await node.warm.prepare()
    assert not list((tmp_path / "reaper").iterdir())


@pytest.fixture
def importing(tmp_path, monkeypatch):
    """A process that is to import modules ahead of need, some of which mean it no good."""
    modules = {"good": "", "broken": "1 / 0", "leaving": "import sys; sys.exit(3)"}
    for name, text in modules.items():
        (tmp_path / f"ahead_{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(zygote, "_AHEAD", ("ahead_missing", "ahead_broken", "ahead_leaving", "ahead_good"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield zygote._Zygote(theirs)
    sys.modules.pop("ahead_good", None)


def test_what_is_missing_or_broken_keeps_nothing_else_from_being_imported(importing, monkeypatch):
    monkeypatch.setattr(zygote, "is_idle", lambda: True)
    while importing._ahead:
        assert importing._import_next()
    assert "ahead_good" in sys.modules


def test_nothing_is_imported_ahead_while_others_wait_for_a_core(importing, monkeypatch):
    monkeypatch.setattr(zygote, "is_idle", lambda: False)
    assert not importing._import_next()
    assert len(importing._ahead) == 4


async def test_a_fork_that_fails_says_why_and_how_it_ended(node, tmp_path):
    last_words = tmp_path / "termination-log"
    last_words.touch()
    server = await node.start(tmp_path / "nothing", TERMINATION_MESSAGE_PATH=str(last_words))
    assert (await server.wait()).code == 1
    assert "nothing" in last_words.read_text()
    assert last_words.read_text() in (tmp_path / "log").read_text()
