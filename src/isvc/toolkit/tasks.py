"""Tasks that run beside others: how they are kept, and how they are ended."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def cancel(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancels tasks, and returns when they have ended in whatever way; None is one that never began."""
    begun = [task for task in tasks if task is not None]
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)


class Background(set[asyncio.Task[None]]):
    """Tasks that nobody waits for: the event loop itself would let them be collected before they are done."""

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
