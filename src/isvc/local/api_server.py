"""The API server's process: a child with a log of its own, which ends when `isvc up` does.

If it dies, it is started again on its port and its files, while all else goes on with what it knows: what was
acknowledged is on disk, and its clients come back by themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from isvc.local.home import Home
from isvc.local.node.processes.process import Reaper, die_with_parent
from isvc.wire.private_files import open_private

log = logging.getLogger("isvc.up")

_PROGRAM = "isvc.local.api_server_program"
_STEADY: Final = 10.0  # seconds after which a start counts as one that succeeded
_ATTEMPTS: Final = 5  # starts in a row that may fail


class DidNotStart(Exception):
    """The API server ended at its start; the message has the last lines of its log."""


class ApiServer:
    def __init__(self, home: Home, reaper: Reaper) -> None:
        self._home = home
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None
        self._arguments: list[str] = []
        self._can_restart = True
        self._started = 0.0
        self._log = home.logs / "apiserver.log"

    def spawn(self, port: int, *, ephemeral: bool, durable: bool) -> None:
        """Starts it; it is ready once it has written the kubeconfig."""
        self._home.kubeconfig.unlink(missing_ok=True)
        self._log.unlink(missing_ok=True)
        self._arguments = [str(self._home.api_server), str(self._home.kubeconfig), str(port)]
        self._arguments += ["--ephemeral"] if ephemeral else []
        self._arguments += ["--durable"] if durable else []
        self._can_restart = not ephemeral
        self._start()

    def _start(self) -> None:
        with open_private(self._log, "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _PROGRAM, *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        self._reaper.add(self._process.pid)
        self._started = time.monotonic()

    async def ready(self) -> None:
        while not await asyncio.to_thread(self._home.kubeconfig.exists):
            self._check()
            await asyncio.sleep(0.005)

    def _check(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            said = _tail(self._log) or f"{self._log} says nothing, as when the disk is full"
            raise DidNotStart(f"the API server ended ({_end(self._process)}):\n{said}")

    async def keep_running(self) -> None:
        """Starts it again whenever it ends; raises when that does not help, or when its objects were in memory."""
        failures = 0
        while True:
            await asyncio.sleep(0.1)
            if self._process is None or self._process.poll() is None:
                continue
            failures = 0 if time.monotonic() - self._started > _STEADY else failures + 1
            if not self._can_restart or failures == _ATTEMPTS:
                self._check()
            log.warning("the API server ended (%s) and is started again", _end(self._process))
            self._reaper.remove(self._process.pid)
            await asyncio.sleep(failures * 0.5)
            self._start()

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


def _end(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _tail(path: Path, lines: int = 15) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
