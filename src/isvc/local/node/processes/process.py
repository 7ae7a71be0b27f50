"""A local process of its own group, whose output goes to a log and which cannot outlive the node.

Three things ensure that: the kernel kills it when the node's thread ends (Linux), a reaper kills its whole group, and
what has left that, when the node's pipe to it ends, and what both may have missed is written down and killed at the
next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import itertools
import logging
import os
import secrets
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from isvc.local.node.processes.descriptors import copy
from isvc.local.node.processes.logs import Log
from isvc.local.node.processes.reaper import MARK, kill_marked, start_time
from isvc.local.node.processes.standard_files import Connected, Files, StandardInput
from isvc.local.node.sandbox.policy import Policy, confinement

log = logging.getLogger("isvc.node")

_PR_SET_PDEATHSIG = 1
_END_SECONDS = 2.0
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


class CannotStart(Exception):
    """The program is not there or may not be run."""


@dataclass(frozen=True, slots=True)
class Exit:
    code: int
    signal: int = 0

    @classmethod
    def of(cls, returncode: int) -> Exit:
        return cls(128 - returncode, -returncode) if returncode < 0 else cls(returncode)


class Reaper:
    """The node's side of the reaper program, and the record of groups for the next start."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._mark = secrets.token_hex(8)
        self._marks = itertools.count(1)
        self._program: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._record.mkdir(parents=True, exist_ok=True)
        self._program = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("reaper.py")), f"{self._mark}."],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def new_mark(self) -> str:
        """Returns a mark, by which a process and its children are known also outside their group."""
        return f"{self._mark}.{next(self._marks)};"

    def add(self, group: int) -> None:
        started = start_time(group)
        try:
            (self._record / str(group)).write_text(started)
        except OSError as error:  # a full disk; the reaper knows of it all the same
            log.warning("process group %d is not on record: %s", group, error)
        self._tell(f"+{group} {started}\n")

    def remove(self, group: int) -> None:
        (self._record / str(group)).unlink(missing_ok=True)
        self._tell(f"-{group}\n")

    def kill_strays(self) -> list[int]:
        """Kills groups that an earlier node left: those whose leader is still the process it was."""
        killed = []
        for path in self._record.glob("[0-9]*"):
            group = int(path.name)
            if path.read_text() and path.read_text() == start_time(group):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signal.SIGKILL)
                    killed.append(group)
            path.unlink(missing_ok=True)
        for group in killed:
            _wait_until_gone(group)
        return killed

    def stop(self) -> None:
        program, self._program = self._program, None
        if program is not None and program.stdin is not None:
            program.stdin.close()
            program.wait()

    def _tell(self, line: str) -> None:
        try:
            self._write(line)
        except BrokenPipeError:  # somebody has killed it: the next one learns of all groups
            self.stop()
            self.start()
            for path in self._record.glob("[0-9]*"):
                self._write(f"+{path.name} {path.read_text()}\n")

    def _write(self, line: str) -> None:
        if self._program is not None and self._program.stdin is not None:
            self._program.stdin.write(line.encode())


def _wait_until_gone(pid: int) -> None:
    """Waits for its end: its ports are free only then."""
    deadline = time.monotonic() + _END_SECONDS
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.005)


def is_alive(pid: int) -> bool:
    """Returns whether there is a process of this number that has not ended; a zombie has."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except ProcessLookupError:
        return False
    except (OSError, IndexError):  # somebody else's, or a system without /proc
        return True


class _Output:
    """Copies what a process writes to its log.

    The pipe is not given to asyncio's own subprocess, which reports the process's end only after everybody who
    inherited the pipe has closed it; nor to a transport, because uvloop closes a pipe twice, the second time perhaps a
    file that another thread has opened under the same number.
    """

    def __init__(self, log: Log, descriptor: int) -> None:
        self.ended = asyncio.Event()
        os.set_blocking(descriptor, False)
        self._reading = asyncio.create_task(self._read(log, descriptor))

    async def _read(self, log: Log, descriptor: int) -> None:
        async def write(data: bytes) -> None:
            log.write(data)
            await asyncio.sleep(0)  # others have their turn, however much the process writes

        try:
            await copy(descriptor, write)
        finally:
            os.close(descriptor)
            self.ended.set()


_T = TypeVar("_T")


async def in_full(starting: Coroutine[Any, Any, _T], undo: Callable[[_T], Awaitable[object]]) -> _T:
    """Returns the outcome of a start, which is undone, not left half-done, when whoever waits for it is cancelled."""
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await undo(await task)
        raise


async def spawn(
    command: Sequence[str], env: Mapping[str, str], folder: Path, policy: Policy | None, files: Files
) -> asyncio.subprocess.Process:
    """Starts a process as the leader of a session of its own. Raises CannotStart."""
    try:
        with confinement(policy) as confine:
            return await asyncio.create_subprocess_exec(
                *command,
                env=env,
                cwd=folder,
                stdin=files.stdin,
                stdout=files.stdout,
                stderr=files.stderr,
                start_new_session=files.terminal is None,
                preexec_fn=_before_the_program(confine, files.terminal),
            )
    except FileNotFoundError:
        missing = command[0] if os.path.isdir(folder) else folder  # noqa: ASYNC240
        raise CannotStart(f"{missing}: no such file or directory on this machine") from None
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise CannotStart(f"{command[0]}: {error}") from None


async def run_beside(
    command: Sequence[str], env: Mapping[str, str], folder: Path, reaper: Reaper, policy: Policy | None = None
) -> tuple[int, str]:
    """Runs a short command beside a container's process, for probes and hooks; returns its exit code and output."""
    with confinement(policy) as confine:
        starting = asyncio.create_subprocess_exec(
            *command,
            env={**env, MARK: reaper.new_mark()},
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_before_the_program(confine),
        )
        process = await in_full(starting, _end)
    reaper.add(process.pid)
    try:
        output, _ = await process.communicate()
    finally:
        kill_group(process.pid)
        reaper.remove(process.pid)
    return process.returncode or 0, output.decode("utf-8", "replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    kill_group(process.pid)
    await process.wait()


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


class Running(Protocol):
    """A process as asyncio has it."""

    @property
    def pid(self) -> int: ...
    async def wait(self) -> int: ...
    def terminate(self) -> None: ...


Fork = Callable[[Sequence[str], Mapping[str, str], Path, int, Policy | None], Awaitable[Running | None]]
"""Runs a command without starting a program for it, where that is possible: command, environment, folder, output."""


class Process:
    def __init__(
        self, process: Running, mark: str, log: Log, reaper: Reaper, output: _Output, stdin: StandardInput | None
    ) -> None:
        self._process = process
        self._mark = mark
        self._log = log
        self._reaper = reaper
        self._output = output
        self.stdin = stdin

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        env: Mapping[str, str],
        folder: Path,
        log: Log,
        reaper: Reaper,
        policy: Policy | None = None,
        fork: Fork | None = None,
        *,
        stdin: bool = False,
        tty: bool = False,
    ) -> Process:
        mark, ends = reaper.new_mark(), Connected.open(stdin=stdin, tty=tty)
        output = _Output(log, ends.output)
        input_ = None if ends.input is None else StandardInput(ends.input, is_terminal=tty)
        marked, files = {**env, MARK: mark}, ends.files
        try:
            forked = None
            if fork is not None and input_ is None:
                forked = await fork(command, marked, folder, files.stdout, policy)
            process = forked or await spawn(command, marked, folder, policy, files)
        except BaseException:
            if input_ is not None:
                input_.close()
            raise
        finally:
            ends.close_files()
        reaper.add(process.pid)
        return cls(process, mark, log, reaper, output, input_)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def wait(self) -> Exit:
        """Waits for its end; what it left running, in its group or outside, is killed."""
        returncode = await self._process.wait()
        self.kill()
        await asyncio.to_thread(kill_marked, self._mark)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._output.ended.wait(), 1)
        self._log.close()
        if self.stdin is not None:
            self.stdin.close()
        self._reaper.remove(self.pid)
        return Exit.of(returncode)

    async def end(self) -> Exit:
        self.kill()
        return await self.wait()

    def terminate(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def kill(self) -> None:
        kill_group(self.pid)

    def memory(self) -> int:
        """Returns the bytes in use by the process and its children; 0 where the system does not say."""
        return _memory(self.pid)


def _memory(pid: int) -> int:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    children: list[str] = []
    with contextlib.suppress(OSError):  # not every kernel lists them
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return pages * _PAGE + sum(_memory(int(child)) for child in children)


_PAGE = os.sysconf("SC_PAGE_SIZE")


def _before_the_program(confine: Callable[[], None] | None, terminal: int | None = None) -> Callable[[], None] | None:
    """Returns what a child runs between fork and exec."""
    take = None if terminal is None else partial(_take_terminal, terminal)
    steps = [step for step in (take, die_with_parent(), confine) if step is not None]

    def prepare() -> None:
        for step in steps:
            step()

    return prepare if steps else None


def _take_terminal(terminal: int) -> None:
    """Makes it the controlling terminal, which only the leader of a session can."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


def die_with_parent() -> Callable[[], None] | None:
    """Returns what a child runs before its program, where the kernel can be asked to end it with this process."""
    if _libc is None:
        return None
    libc, parent = _libc, os.getpid()

    def ask_the_kernel() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the kernel was asked
            os._exit(137)

    return ask_the_kernel
