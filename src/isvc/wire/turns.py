"""Turns of an event loop, kept short: what comes in numbers asks before each piece whether this turn has room for it.

Timers, and whatever else arrives, wait until all callbacks of a turn have run: each may be short, and all of them long.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final
from weakref import WeakKeyDictionary

_LONG: Final = 0.005  # seconds


class _Turn:
    """The turn that a loop is in; it begins with the first piece of work that asks for room."""

    began: float | None = None

    def end(self) -> None:
        self.began = None


_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Turn]] = WeakKeyDictionary()


async def room_in_turn() -> None:
    """Returns at once while the turn is young, else in a later one, after those who asked before."""
    loop = asyncio.get_running_loop()
    turn = _turns.get(loop)
    if turn is None:
        turn = _turns[loop] = _Turn()
    while turn.began is not None and time.monotonic() - turn.began > _LONG:  # noqa: ASYNC110 - nobody tells
        await asyncio.sleep(0)
    if turn.began is None:
        turn.began = time.monotonic()
        loop.call_soon(turn.end)
