"""Waiting for what should come true, with a deadline that only a broken program reaches."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

DEADLINE = 60.0


async def until(condition: Callable[[], Any], what: str = "", within: float = DEADLINE, every: float = 0.02) -> Any:
    """The first true value of `condition()`, which may be a coroutine function."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        value = condition()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return value
        if loop.time() > deadline:
            raise AssertionError(f"still not true after {within:.0f} s: {what or condition}")
        await asyncio.sleep(every)


def wait_until(condition: Callable[[], Any], what: str = "", within: float = DEADLINE, every: float = 0.05) -> Any:
    """The same for tests that are no coroutines. A look that takes long is followed by as long a pause."""
    deadline = time.monotonic() + within
    while True:
        began = time.monotonic()
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"still not true after {within:.0f} s: {what or condition}")
        time.sleep(max(every, time.monotonic() - began))


async def let_others_run() -> None:
    """Gives tasks that wait for nothing a few turns of the event loop."""
    for _ in range(5):
        await asyncio.sleep(0)
