"""Reading from and writing to file descriptors that do not block: pipes and terminals.

The event loop's own transports are no choice for terminals: uvloop takes the end of one for a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable


async def copy(descriptor: int, write: Callable[[bytes], Awaitable[None]]) -> None:
    """Passes on what comes out of a file descriptor, until its end."""
    with contextlib.suppress(ConnectionError):
        while data := await _read(descriptor):
            await write(data)


async def _read(descriptor: int) -> bytes:
    while True:
        try:
            return os.read(descriptor, 1 << 16)
        except BlockingIOError:
            await _until(descriptor, write=False)
        except OSError:  # of a terminal that nobody has open any more
            return b""


async def write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            await _until(descriptor, write=True)


async def _until(descriptor: int, *, write: bool) -> None:
    """Returns when the descriptor can be read from, or written to."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, wake)
    try:
        await ready
    finally:
        remove(descriptor)
