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


async def run_together(*works: Coroutine[Any, Any, None]) -> None:
    """Runs all to their end; where one fails, or this is cancelled, the others are ended before it raises.

    As a TaskGroup does, which is part of a cycle once it was cancelled (until Python 3.13): what it ran waited for the
    garbage collector with everything that it knew.
    """
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        await cancel(*tasks)
        tasks.clear()


class Background(set[asyncio.Task[None]]):
    """Tasks that nobody waits for: the event loop itself would let them be collected before they are done."""

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
