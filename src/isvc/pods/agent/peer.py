"""One end of a connection through the agent: what it sends and what it is sent, at the speed of the slower."""

from __future__ import annotations

import asyncio
from collections import deque
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
        self._pieces: deque[bytes] = deque()
        self.waiting = 0  # bytes that have arrived and were not taken
        self._arrival: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None  # set while what was written waits to be taken
        self._other: Peer | None = None
        self._spliced = self._held = False
        self._look: Callable[[bytes], None] | None = None
        self.ended = False  # it sends no more
        self.lost = self._loop.create_future()  # it takes no more either

    # What it sends

    async def more(self) -> bool:
        """Waits for further bytes; returns False when there are none to come."""
        if not self.ended:
            self._arrival = self._loop.create_future()
            self._hold(False)
            before = self.waiting
            await self._arrival
            return self.waiting > before
        return False

    def take(self) -> bytes:
        """Returns the next of what has arrived, as it came."""
        piece = self._pieces.popleft()
        self.waiting -= len(piece)
        return piece

    def take_until(self, mark: bytes) -> bytes | None:
        """Returns what has arrived up to the end of a mark; None as long as that is not there."""
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        end = data.find(mark)
        self._pieces.clear()
        self.waiting = 0
        if end < 0:
            self.put_back(data)
            return None
        end += len(mark)
        self.put_back(data[end:])
        return data[:end]

    def put_back(self, data: bytes) -> None:
        if data:
            self._pieces.appendleft(data)
            self.waiting += len(data)

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
        """Ends the other's end when this one's ends: nobody waits for its answer any more."""
        self._other = other
        if self.lost.done():
            other.abort()

    def pass_end(self) -> None:
        """Tells the other that nothing more comes, once all that came before was passed on."""
        if self._other is not None and self.ended and not self.waiting:
            self._other.finish()

    def splice(self, other: Peer, look: Callable[[bytes], None] | None = None) -> None:
        """Passes everything that it sends to the other peer, as it is; `look` sees it, too."""
        self._look, self._spliced = look, True
        self.end_with(other)
        while self._pieces:
            self._pass_on(self.take())
        self.pass_end()
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
        self._pieces.append(data)
        self.waiting += len(data)
        self._hold(self.waiting >= _READ_AHEAD)
        self._wake()

    def eof_received(self) -> bool:
        self.ended = True
        self._wake()
        if self._other is not None and not self.waiting:
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
