"""The API server's process: a child with a log of its own, which ends when `isvc up` does."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

from isvc.local.home import Home
from isvc.local.node.process import Reaper, die_with_parent
from isvc.local.private_files import open_private

_PROGRAM = "isvc.local.api_server_program"


class DidNotStart(Exception):
    """The API server ended at its start; the message has the last lines of its log."""


class ApiServer:
    def __init__(self, home: Home, reaper: Reaper) -> None:
        self._home = home
        self._reaper = reaper
        self._process: subprocess.Popen[bytes] | None = None
        self._log = home.logs / "apiserver.log"

    def spawn(self, port: int, *, ephemeral: bool, durable: bool) -> None:
        """Starts it; it is ready once it has written the kubeconfig."""
        self._home.kubeconfig.unlink(missing_ok=True)
        arguments = [str(self._home.api_server), str(self._home.kubeconfig), str(port)]
        arguments += ["--ephemeral"] if ephemeral else []
        arguments += ["--durable"] if durable else []
        with open_private(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _PROGRAM, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )
        self._reaper.add(self._process.pid)

    async def ready(self) -> None:
        while not await asyncio.to_thread(self._home.kubeconfig.exists):
            self._check()
            await asyncio.sleep(0.005)

    def _check(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise DidNotStart(f"the API server ended (exit code {self._process.returncode}):\n{_tail(self._log)}")

    async def watch(self) -> None:
        """Raises when it ends."""
        while True:
            self._check()
            await asyncio.sleep(0.5)

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


def _tail(path: Path, lines: int = 15) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
