"""Whether the cluster answers. It is asked when an informer has lost its connection, until it answers again.

Pages go on to show what was known; they only have to say that it may be old.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from isvc.kube.errors import ApiError
from isvc.kube.timestamps import timestamp
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock
from isvc.toolkit.failure import ClusterError

ASK_EVERY: Final = 1.0  # seconds
WITHIN: Final = 5.0


class Reachability:
    def __init__(self, client: Client, clock: Clock, changed: Callable[[], None]) -> None:
        """`changed` is called when the cluster does not answer any more, and when it does again."""
        self.lost_since = ""  # a time, while it does not answer
        self._client, self._clock, self._changed = client, clock, changed
        self._doubt = asyncio.Event()

    def doubt(self) -> None:
        self._doubt.set()

    async def run(self) -> None:
        while True:
            await self._doubt.wait()
            self._doubt.clear()
            while not await self._answers():
                self._set(self.lost_since or timestamp(self._clock.now()))
                await self._clock.sleep(ASK_EVERY)
            self._set("")

    async def _answers(self) -> bool:
        try:
            await self._client.request_bytes("GET", "/version", within=WITHIN)
        except ClusterError:
            return False
        except ApiError:
            pass
        return True

    def _set(self, lost_since: str) -> None:
        if self.lost_since != lost_since:
            self.lost_since = lost_since
            self._changed()
