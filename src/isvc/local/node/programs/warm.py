"""Model servers that are forked from a process in which their frameworks are imported already.

That process, the zygote, is started with `isvc up` or with the first server, and again when it has died; servers that
it forked live on. One is enough for all frameworks: they import the same libraries, and little else. Where forking does
not work, or would not be the same as a fresh start, the node starts a program.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import itertools
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from isvc.kube.objects import Object, dig
from isvc.local.node import python_path
from isvc.local.node.environment import inherited_variables
from isvc.local.node.processes.process import Reaper, die_with_parent
from isvc.local.node.processes.reaper import MARK
from isvc.local.node.programs.images import ImageTable, ImageTableError, UnknownImage
from isvc.local.node.programs.zygote import MESSAGE
from isvc.local.node.sandbox.policy import Policy
from isvc.toolkit.tasks import Background

log = logging.getLogger("isvc.node")

_PROGRAM: Final = (sys.executable, "-m", "isvc.pods.modelserver")
_FRAMEWORKS: Final = frozenset({"sklearn", "xgboost", "lightgbm", "mlflow", "pmml"})
# Variables that are read by the interpreter or when a module is imported, which a fork has behind it.
_READ_AT_IMPORT: Final = ("PYTHON", "LD_", "OPENBLAS_", "MKL_", "BLIS_", "KMP_", "GOMP_", "SKLEARN_", "SCIPY_", "NPY_")
_OURS: Final = frozenset({"PYTHONUNBUFFERED", "OPENBLAS_NUM_THREADS"})
_PYTHON_PATH: Final = str(python_path.FOLDER)
_PATIENCE_SECONDS: Final = 30.0
IDLE_SECONDS: Final = 600.0
_ROOM: Final = 1 << 30  # bytes that have to be available before anything is imported ahead of need
_UNKNOWN: Final = 255  # of a server whose zygote died before it


class Unavailable(Exception):
    """No server can be forked; a program can be started instead."""


def framework_of(command: Sequence[str], env: Mapping[str, str]) -> str | None:
    """Returns the framework of a server that can be forked; None for one that has to be a program of its own."""
    if sys.platform != "linux" or tuple(command[:3]) != _PROGRAM:
        return None
    return None if any(_matters_at_import(name, value) for name, value in env.items()) else named_framework(command)


def named_framework(command: Sequence[str]) -> str | None:
    """Returns the framework that a command names, if its import takes long."""
    chosen = {word.removeprefix("--framework=") for word in command if word.startswith("--framework=")}
    is_custom = any(word.startswith("--model_class") for word in command)
    return chosen.pop() if len(chosen) == 1 and not is_custom and chosen <= _FRAMEWORKS else None


def _has_room() -> bool:
    """Returns whether there is memory for what may never be needed."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, IndexError):
        return False
    return int(available) * 1024 >= _ROOM


def _matters_at_import(name: str, value: str) -> bool:
    if name == "PYTHONPATH":
        return value != _PYTHON_PATH
    return name.startswith(_READ_AT_IMPORT) and name not in _OURS and os.environ.get(name) != value


class ForkedServer:
    """A server's process: what asyncio's would be, for a process that is not our child."""

    def __init__(self, pid: int, pidfd: int) -> None:
        self.pid = pid
        self._pidfd = pidfd
        self._returncode: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(pidfd, self._set_gone)

    async def wait(self) -> int:
        return await asyncio.shield(self._returncode)

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError, OSError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGTERM)

    def set_ended(self, returncode: int) -> None:
        if not self._returncode.done():
            self._returncode.set_result(returncode)

    def _set_gone(self) -> None:
        """Waits a moment for the zygote, which knows how it ended, to say so, if it lives."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = -1
        loop.call_later(1.0, self.set_ended, _UNKNOWN)


class Zygote:
    """The node's end of the socket to a zygote."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket) -> None:
        self.process = process
        self.alive = True
        self._control = control
        self._ids = itertools.count(1)
        self._one_at_a_time = asyncio.Lock()
        self._asked: dict[int, asyncio.Future[ForkedServer]] = {}
        self._servers: dict[int, ForkedServer] = {}
        self._used = asyncio.get_running_loop().time()
        asyncio.get_running_loop().add_reader(control, self._readable)

    @classmethod
    async def start(cls, env: Mapping[str, str]) -> Zygote:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "isvc.local.node.programs.zygote", str(theirs.fileno())),
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                preexec_fn=die_with_parent(),
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        ours.setblocking(False)
        return cls(process, ours)

    async def fork(self, request: Mapping[str, Any], output: int) -> ForkedServer:
        async with self._one_at_a_time:
            number = next(self._ids)
            answer: asyncio.Future[ForkedServer] = asyncio.get_running_loop().create_future()
            self._asked[number] = answer
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    socket.send_fds(self._control, [orjson.dumps({**request, "id": number}, default=str)], [output])
                    return await answer
            except (OSError, TimeoutError) as error:
                self.close()
                raise Unavailable(str(error)) from error
            finally:
                self._asked.pop(number, None)

    def import_now(self, framework: str) -> None:
        """Has a framework imported, whatever else the machine has to do."""
        if self.alive:
            with contextlib.suppress(OSError):  # who asks for a server will see
                self._control.send(orjson.dumps({"framework": framework}))

    def idle_for(self) -> float:
        """Returns for how many seconds no server of it has run, or been asked for."""
        is_busy = self._servers or self._asked or self._one_at_a_time.locked()
        return 0.0 if is_busy else asyncio.get_running_loop().time() - self._used

    def close(self) -> None:
        """Ends the zygote, which ends when its socket does; servers go on."""
        if not self.alive:
            return
        self.alive = False
        asyncio.get_running_loop().remove_reader(self._control)
        self._control.close()
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(Unavailable("the process that forks servers has ended"))
                waiting.exception()  # nobody may be waiting

    def _readable(self) -> None:
        try:
            message, files, _, _ = socket.recv_fds(self._control, MESSAGE, 1)
        except OSError:
            message, files = b"", []
        if not message:
            self.close()
            return
        answer = orjson.loads(message)
        if "returncode" in answer:
            self._used = asyncio.get_running_loop().time()
            if server := self._servers.pop(answer["pid"], None):
                server.set_ended(answer["returncode"])
        else:
            self._handle_answer(answer, files)

    def _handle_answer(self, answer: Mapping[str, Any], files: Sequence[int]) -> None:
        waiting = self._asked.pop(answer["id"], None)
        server = ForkedServer(answer["pid"], files[0]) if files else None
        if server is not None:
            self._servers[server.pid] = server
        if waiting is None or waiting.done():  # who asked is gone: so must be what was asked for
            if server is not None:
                os.killpg(server.pid, signal.SIGKILL)
        elif server is not None:
            waiting.set_result(server)
        else:
            waiting.set_exception(Unavailable(answer["problem"]))


class WarmServers:
    def __init__(self, reaper: Reaper, idle_seconds: float = IDLE_SECONDS) -> None:
        self._reaper = reaper
        self._idle_seconds = idle_seconds
        self._zygote: Zygote | None = None
        self._starting = asyncio.Lock()
        self._look: asyncio.TimerHandle | None = None
        self._background = Background()

    async def fork(
        self, command: Sequence[str], env: Mapping[str, str], folder: Path, output: int, policy: Policy | None
    ) -> ForkedServer | None:
        """Returns the server that the command would start; None where it has to be started as a program."""
        framework = framework_of(command, env)
        if framework is None:
            return None
        request = {
            "framework": framework,
            "arguments": list(command[len(_PROGRAM) :]),
            "env": dict(env),
            "folder": str(folder),
            "policy": None if policy is None else dataclasses.asdict(policy),
        }
        try:
            return await (await self._start()).fork(request, output)
        except (Unavailable, OSError) as error:
            log.warning("the server of %s is started as a program: %s", framework, error)
            return None

    async def prepare(self) -> None:
        """Has frameworks imported ahead of need, whenever the machine is idle and if it has the memory."""
        if sys.platform == "linux" and _has_room():
            with contextlib.suppress(OSError):  # reported when a server is asked for
                await self._start()

    async def prepare_for(self, pod: Object, images: ImageTable) -> None:
        """Imports what the servers of a pod will need while init containers fetch the models for them."""
        for spec in dig(pod, "spec", "containers"):
            with contextlib.suppress(UnknownImage, ImageTableError, OSError):  # reported when the container is to start
                command = [*images.get(spec.get("image", "")).command, *(spec.get("args") or ())]
                if framework := named_framework(command):
                    (await self._start()).import_now(framework)

    async def _start(self) -> Zygote:
        """Returns the zygote, which is started if there is none."""
        async with self._starting:
            if self._zygote is not None and not self._zygote.alive:
                await self._end(self._zygote)
                self._zygote = None
            if self._zygote is None:
                self._zygote = await Zygote.start(self._environment())
                self._reaper.add(self._zygote.process.pid)
            self._look_later()
            return self._zygote

    def _environment(self) -> dict[str, str]:
        """Returns what the system goes on to show as that of the forked servers, too: it has to say whose they are."""
        home = {name: os.environ[name] for name in ("ISVC_HOME",) if name in os.environ}
        ours = {
            "OPENBLAS_NUM_THREADS": "1",  # threads do not survive a fork: libraries start theirs in the servers
            "PYTHONPATH": _PYTHON_PATH,
            MARK: self._reaper.new_mark(),
        }
        return {**inherited_variables(os.environ), **home, **ours}

    def _look_later(self) -> None:
        if self._look is None:
            self._look = asyncio.get_running_loop().call_later(self._idle_seconds, self._end_idle)

    def _end_idle(self) -> None:
        """Ends a zygote that nobody needs any more: none of its servers runs, and none was asked for in a while."""
        self._look = None
        if self._zygote is None:
            return
        if self._zygote.idle_for() < self._idle_seconds:
            self._look_later()
            return
        self._background.start(self._end(self._zygote))
        self._zygote = None

    async def _end(self, zygote: Zygote) -> None:
        zygote.close()
        with contextlib.suppress(ProcessLookupError):
            zygote.process.kill()  # nothing is lost of an import that is under way
        await zygote.process.wait()
        self._reaper.remove(zygote.process.pid)

    async def close(self) -> None:
        if self._look is not None:
            self._look.cancel()
        await asyncio.gather(*self._background)
        if self._zygote is not None:
            await self._end(self._zygote)
