"""Turns of an event loop, kept short: what comes in numbers asks before each piece whether this turn has room for it.

Timers, and whatever else arrives, wait until all callbacks of a turn have run: each may be short, and all of them long.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

_LONG: Final = 0.005  # seconds


class _Turn:
    """The turn that the loop is in; it begins with the first piece of work that asks for room."""

    loop: asyncio.AbstractEventLoop | None = None
    began: float | None = None

    def end(self) -> None:
        self.began = None


_turn: Final = _Turn()  # of the one loop that a program runs; another one begins anew


async def room_in_turn() -> None:
    """Returns at once while the turn is young, else in a later one, after those who asked before."""
    loop = asyncio.get_running_loop()
    if _turn.loop is not loop:
        _turn.loop, _turn.began = loop, None
    while _turn.began is not None and time.monotonic() - _turn.began > _LONG:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    if _turn.began is None:
        _turn.began = time.monotonic()
        loop.call_soon(_turn.end)
