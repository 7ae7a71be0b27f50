"""One end of a connection through the agent: what it sends and what it is sent, at the speed of the slower."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

_READ_AHEAD = 1 << 18


class Peer(asyncio.Protocol):
    """A client or the model server. What it sends waits in a buffer, or goes straight on once it is spliced."""

    def __init__(self, made: Callable[[Peer], None] | None = None) -> None:
        """`made` is called when the connection is there."""
        self._made = made
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._buffer = bytearray()
        self._arrival: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None  # set while what was written waits to be taken
        self._other: Peer | None = None
        self._spliced = self._held = False
        self._look: Callable[[bytes], None] | None = None
        self.ended = False  # it sends no more
        self.lost = self._loop.create_future()  # it takes no more either

    # What it sends

    @property
    def waiting(self) -> int:
        """Returns how many bytes have arrived and were not taken."""
        return len(self._buffer)

    async def more(self) -> bool:
        """Waits for further bytes; returns False when there are none to come."""
        if not self.ended:
            self._arrival = self._loop.create_future()
            self._hold(False)
            before = len(self._buffer)
            await self._arrival
            return len(self._buffer) > before
        return False

    def find(self, mark: bytes) -> int:
        return self._buffer.find(mark)

    def take(self, count: int) -> bytes:
        """Returns up to so many of the bytes that have arrived, which are then gone from the buffer."""
        taken = bytes(self._buffer) if count >= len(self._buffer) else bytes(self._buffer[:count])
        del self._buffer[: len(taken)]
        return taken

    def put_back(self, data: bytes) -> None:
        self._buffer[:0] = data

    # What it is sent

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Returns when the peer keeps up, or is lost."""
        if self._room is not None:
            await self._room

    def finish(self) -> None:
        """Tells the peer that nothing more comes; what it sends is still read."""
        if not self._transport.is_closing() and self._transport.can_write_eof():
            self._transport.write_eof()

    def close(self) -> None:
        """Sends what is written, and closes."""
        self._transport.close()

    def abort(self) -> None:
        self._transport.abort()

    # Both

    def end_with(self, other: Peer) -> None:
        """From here on the other's end is ended when this one's is: nobody waits for its answer any more."""
        self._other = other
        if self.lost.done():
            other.abort()
        elif self.ended:
            other.finish()

    def splice(self, other: Peer, look: Callable[[bytes], None] | None = None) -> None:
        """Passes everything that it sends to the other peer, as it is; `look` sees it, too."""
        self._look, self._spliced = look, True
        self.end_with(other)
        if self._buffer:
            self._pass_on(self.take(len(self._buffer)))
        self._hold(other._room is not None)

    def _pass_on(self, data: bytes) -> None:
        assert self._other is not None
        self._other.write(data)
        if self._look is not None:
            self._look(data)

    def _hold(self, hold: bool) -> None:
        if hold != self._held and not self._transport.is_closing():
            self._held = hold
            (self._transport.pause_reading if hold else self._transport.resume_reading)()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        if self._made is not None:
            self._made(self)

    def data_received(self, data: bytes) -> None:
        if self._spliced:
            self._pass_on(data)
            return
        self._buffer += data
        self._hold(len(self._buffer) >= _READ_AHEAD)
        self._wake()

    def eof_received(self) -> bool:
        self.ended = True
        self._wake()
        if self._other is not None:
            self._other.finish()
            if self._other.ended:
                self._other.close()
                return False
        return self._transport.can_write_eof()  # it may still take what it is sent

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self._wake()
        self.resume_writing()
        if not self.lost.done():
            self.lost.set_result(None)
        if self._other is not None:
            (self._other.abort if exc else self._other.close)()

    def pause_writing(self) -> None:
        self._room = self._loop.create_future()
        if self._other is not None and self._other._spliced:
            self._other._hold(True)

    def resume_writing(self) -> None:
        if self._room is not None:
            self._room.set_result(None)
            self._room = None
        if self._other is not None and self._other._spliced:
            self._other._hold(False)

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
