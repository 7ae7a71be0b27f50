"""A program that `isvc up` needs for as long as it runs: a process with a log of its own, which ends with `isvc up`.

If it dies it is started again, while all else goes on with what it knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from isvc.local.node.processes.process import Reaper, die_with_parent
from isvc.wire.private_files import open_private

log = logging.getLogger("isvc.up")

_STEADY: Final = 10.0  # seconds after which a start counts as one that succeeded
_ATTEMPTS: Final = 5  # starts in a row that may fail
_POLL: Final = 0.05


class DidNotStart(Exception):
    """A program ended at its start; the message has the last lines of its log."""


class Child:
    def __init__(self, title: str, log_file: Path, reaper: Reaper) -> None:
        self._title = title
        self._log = log_file
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None
        self._spawn: Callable[[IO[Any]], subprocess.Popen[bytes]]
        self._can_restart = True
        self._started = 0.0
        self.on_restart: Callable[[], None] = lambda: None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
        output: int | None = None,
        can_restart: bool = True,
    ) -> None:
        """`env` None is that of this process; `output` is where standard output goes, if not to the log."""
        self._log.unlink(missing_ok=True)
        self._can_restart = can_restart

        def spawn(log_file: IO[Any]) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                command,
                env=env,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log_file if output is None else output,
                stderr=log_file,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )

        self._spawn = spawn
        self._start()

    def _start(self) -> None:
        with open_private(self._log, "ab") as log_file:
            self._process = self._spawn(log_file)
        self._reaper.add(self._process.pid)
        self._started = time.monotonic()

    def check(self) -> None:
        """Raises DidNotStart if it has ended."""
        if self._process is not None and self._process.poll() is not None:
            said = _tail(self._log) or f"{self._log} says nothing, as when the disk is full"
            raise DidNotStart(f"{self._title} ended ({_end(self._process)}):\n{said}")

    async def wait(self) -> None:
        """Returns when the process that runs now has ended."""
        if self._process is not None:
            await _wait_for(self._process)

    async def keep_running(self) -> None:
        """Starts it again whenever it ends; raises DidNotStart when that does not help, or cannot."""
        failures = 0
        while self._process is not None:
            await _wait_for(self._process)
            failures = 0 if time.monotonic() - self._started > _STEADY else failures + 1
            if not self._can_restart or failures == _ATTEMPTS:
                self.check()
            log.warning("%s ended (%s) and is started again", self._title, _end(self._process))
            self._reaper.remove(self._process.pid)
            await asyncio.sleep(max(0, failures - 1) * 0.5)
            self._start()
            self.on_restart()

    async def stop(self) -> None:
        process = self._process
        if process is None:
            return
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, 5)
        if process.poll() is None:
            process.kill()
            await asyncio.to_thread(process.wait)
        self._reaper.remove(process.pid)


async def _wait_for(process: subprocess.Popen[bytes]) -> None:
    """Returns when the process has ended: at once, where the kernel says so."""
    with contextlib.suppress(OSError, AttributeError):
        descriptor = os.pidfd_open(process.pid)
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
    while process.poll() is None:  # noqa: ASYNC110 - a process, and no other way to wait for it
        await asyncio.sleep(_POLL)


def _end(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _tail(path: Path, lines: int = 15) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
