"""The API server's process. If it dies, it is started again on its port and its files: what was acknowledged is on
disk, and its clients come back by themselves.
"""

from __future__ import annotations

import asyncio
import sys

from isvc.local.child import Child
from isvc.local.home import Home
from isvc.local.node.processes.process import Reaper

_PROGRAM = "isvc.local.api_server_program"


class ApiServer(Child):
    def __init__(self, home: Home, reaper: Reaper) -> None:
        super().__init__("the API server", home.logs / "apiserver.log", reaper)
        self._home = home

    def spawn(self, port: int, *, ephemeral: bool, durable: bool) -> None:
        """Starts it; it is ready once it has written the kubeconfig. Objects in memory do not survive it."""
        self._home.kubeconfig.unlink(missing_ok=True)
        flags = ["--ephemeral"] if ephemeral else []
        flags += ["--durable"] if durable else []
        arguments = [str(self._home.api_server), str(self._home.kubeconfig), str(port), self._home.api_socket, *flags]
        self.start([sys.executable, "-P", "-m", _PROGRAM, *arguments], can_restart=not ephemeral)

    async def wait_until_ready(self) -> None:
        while not await asyncio.to_thread(self._home.kubeconfig.exists):
            self.check()
            await asyncio.sleep(0.005)
