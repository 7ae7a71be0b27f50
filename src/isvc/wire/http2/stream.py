"""One request and its answer on a connection: headers, pieces of a body, trailers, in both directions.

What a peer sends is kept until it is read, up to the window that it was given; what is sent waits for its window.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes

if TYPE_CHECKING:
    from isvc.wire.http2.connection import Connection

Headers = list[tuple[bytes, bytes]]


class Broken(ConnectionError):
    """The stream or its connection ended before it was complete."""


class Refused(Broken):
    """The peer has not looked at the request: it may be sent again."""


class Stream:
    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self.number = number
        self.headers: Headers = []  # of the peer; of a client's stream, once `head` has returned
        self.trailers: Headers = []
        self.complete = False  # the peer has sent all
        self.error: Broken | None = None
        self.has_sent_all = False
        self._pieces: deque[bytes] = deque()
        self._unread = 0
        self._reading: asyncio.Future[None] | None = None
        self._writing: asyncio.Future[None] | None = None

    # What the peer sends

    async def head(self) -> Headers:
        while not self.headers:
            self._check()
            await self._wait_to_read()
        return self.headers

    async def read(self) -> bytes:
        """Returns what has arrived; empty at the end."""
        while not self._pieces:
            if self.complete:
                return b""
            self._check()
            await self._wait_to_read()
        piece = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._connection.consumed(self.number, self._unread)
        self._unread = 0
        return piece

    readany = read  # by which aiohttp knows it

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await self.read():
            yield piece

    # What is sent

    def send_headers(self, headers: Headers, *, end: bool = False) -> None:
        """Sends the head, or the trailers, which are the end."""
        self._check()
        self._connection.send_headers(self.number, headers, end=end)
        self.has_sent_all = end

    async def send(self, data: bytes, *, end: bool = False) -> None:
        """Returns when the peer keeps up; raises Broken when it takes nothing for too long."""
        sent = 0
        while True:
            self._check()
            room = self._connection.room(self.number)
            if not room and sent < len(data):
                await self._wait_to_write()
                continue
            piece = data[sent : sent + room] if sent or room < len(data) else data
            sent += len(piece)
            is_last = sent == len(data)
            self._connection.send_data(self.number, piece, end=end and is_last)
            self.has_sent_all = end and is_last
            await self._connection.drain()
            if is_last:
                return

    def reset(self, code: ErrorCodes = ErrorCodes.CANCEL) -> None:
        """Ends the stream in both directions, at once."""
        if self.error is None and not (self.complete and self.has_sent_all):
            self._connection.reset(self.number, code)
        self.fail(Broken("the stream was reset"))

    def close(self) -> None:
        """Ends the stream; a peer that has not finished gets a reset."""
        self.reset(ErrorCodes.NO_ERROR if self.has_sent_all else ErrorCodes.CANCEL)

    @property
    def is_empty(self) -> bool:
        """Whether the peer's head is all that it sent."""
        return self.complete and not self._pieces and not self.trailers

    # For the connection

    def received_head(self, headers: Headers) -> None:
        self.headers = headers
        self._wake_reader()

    def received_trailers(self, trailers: Headers) -> None:
        self.trailers = trailers

    def received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._unread += len(data)
        self._wake_reader()

    def received_end(self) -> None:
        self.complete = True
        self._wake_reader()

    def may_write(self) -> None:
        if self._writing is not None and not self._writing.done():
            self._writing.set_result(None)

    def fail(self, error: Broken) -> None:
        """Ends the stream; what has arrived as a whole can still be read."""
        if self.error is None:
            self.error = error
            self._connection.forget(self.number, self._unread)
            self._unread = 0
            self._wake_reader()
            self.may_write()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def _wake_reader(self) -> None:
        if self._reading is not None and not self._reading.done():
            self._reading.set_result(None)

    async def _wait_to_read(self) -> None:
        self._reading = asyncio.get_running_loop().create_future()
        try:
            await self._reading
        finally:
            self._reading = None

    async def _wait_to_write(self) -> None:
        self._writing = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._connection.patience):
                await self._writing
        except TimeoutError:
            self.reset()
            raise Broken(f"the peer took nothing for {self._connection.patience:g} s") from None
        finally:
            self._writing = None
