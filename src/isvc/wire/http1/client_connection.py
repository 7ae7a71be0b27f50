"""One connection to a server: requests out, one at a time; responses in, whole or piece by piece as they come.

Everything that a server sends is bounded: the head and a whole body by size, a stream by pausing while its reader is
behind. A connection that did anything unexpected is never used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple, cast

import httptools

MAX_HEAD = 1 << 16
MAX_BODY = 1 << 29
MAX_UNREAD = 1 << 20


class Broken(ConnectionError):
    """The connection ended, or became useless, before the response was complete."""


class Stale(Broken):
    """A kept connection ended before any byte of the response: most likely the server had closed it when idle."""


class AnswerTooLarge(Broken):
    """The whole answer would have more bytes than the connection takes."""


class Reply(NamedTuple):
    """Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


class ClientConnection(asyncio.Protocol):
    def __init__(self, on_lost: Callable[[ClientConnection], None], max_body: int = MAX_BODY) -> None:
        """Whole bodies may have up to `max_body` bytes."""
        self._on_lost = on_lost
        self._max_body = max_body
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._waiter: asyncio.Future[None] | None = None
        self._used = self._paused = False
        self._ended = True  # no response is expected
        self._error: Exception | None = None
        self.reusable = False
        self.idle_since = 0.0

    # Requests

    async def exchange(self, request: bytes, *, without_body: bool = False) -> Reply:
        """Sends a request and reads its whole response; `without_body` when it answers HEAD."""
        self._begin(request, streamed=False, without_body=without_body)
        while not self._ended:
            await self._progress()
        if self._error is not None:
            raise self._error
        return Reply(self._status, self._headers, b"".join(self._pieces))

    async def head(self, request: bytes) -> Reply:
        """Sends a request and reads the head of its response; `pieces` has the body."""
        self._begin(request, streamed=True)
        while self._in_head and not self._ended:
            await self._progress()
        if self._in_head and self._error is not None:
            raise self._error
        return Reply(self._status, self._headers)

    async def pieces(self, silence: float | None = None) -> AsyncGenerator[bytes, None]:
        """Yields the body as it comes; raises TimeoutError when nothing comes for `silence` seconds."""
        while True:
            if self._pieces:
                piece = b"".join(self._pieces)
                self._pieces.clear()
                self._unread = 0
                self._pause(False)
                yield piece
            elif self._error is not None:
                raise self._error
            elif self._ended:
                return
            else:
                await self._progress(silence)

    def close(self) -> None:
        self.reusable = False
        self._transport.close()

    def abort(self) -> None:
        self.reusable = False
        self._transport.abort()

    def _begin(self, request: bytes, *, streamed: bool, without_body: bool = False) -> None:
        if self._transport.is_closing():
            raise Stale("the connection was closed")
        self._streamed, self._without_body = streamed, without_body
        self._status = self._size = self._head_size = self._unread = 0
        self._headers: dict[str, str] = {}
        self._pieces: list[bytes] = []
        self._in_head, self._ended, self.reusable = True, False, False
        self._pause(False)
        self._transport.write(request)

    async def _progress(self, within: float | None = None) -> None:
        """Waits until more of the response is there, or its end."""
        self._waiter = self._loop.create_future()
        timer = None if within is None else self._loop.call_later(within, self._give_up)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    def _give_up(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(TimeoutError())

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost(self)
        self.reusable = False
        del self._parser  # which refers to us: with it goes all of a connection, without the garbage collector
        if self._ended:
            return
        if exc is None and not self._in_head and not self._delimited:
            self._end()
        elif self._used and not self._head_size:
            self._fail(Stale("the connection was closed"))
        else:
            self._fail(Broken("the connection was cut"))

    def eof_received(self) -> None:
        self.reusable = False  # asyncio closes our side, too

    def data_received(self, data: bytes) -> None:
        if self._ended:
            self.abort()  # nobody asked: what follows could be taken for the answer to the next request
            return
        if self._in_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(Broken("the server changed the protocol"))
        except httptools.HttpParserError:
            self._fail(Broken("the answer is not valid HTTP/1.1"))
        if self._in_head and self._head_size > MAX_HEAD:
            self._fail(Broken("the headers of the answer are too large"))

    # httptools callbacks

    def on_message_begin(self) -> None:
        if self._ended:
            self.reusable = False  # more than was asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head and not self._ended:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if self._ended or status < 200:
            return
        self._status, self._in_head = status, False
        self._delimited = "content-length" in self._headers or "transfer-encoding" in self._headers
        if self._without_body:
            self._end()
        elif self._streamed:
            self._wake()

    def on_body(self, body: bytes) -> None:
        if self._ended:
            return
        self._pieces.append(body)
        if self._streamed:
            self._unread += len(body)
            self._pause(self._unread > MAX_UNREAD)
            self._wake()
            return
        self._size += len(body)
        if self._size > self._max_body:
            self._fail(AnswerTooLarge(f"the answer is larger than {self._max_body >> 20} MiB"))

    def on_message_complete(self) -> None:
        if self._ended:
            return
        if self._in_head:  # 100 Continue and the like: the response is still to come
            self._headers = {}
            return
        self.reusable = self._parser.should_keep_alive() and not self._transport.get_write_buffer_size()
        self._end()

    def _end(self) -> None:
        self._ended = self._used = True
        self._wake()

    def _fail(self, error: Exception) -> None:
        if not self._ended:
            self._error = error
            self._end()
        self.abort()

    def _pause(self, pause: bool) -> None:
        if pause != self._paused and not self._transport.is_closing():
            self._paused = pause
            (self._transport.pause_reading if pause else self._transport.resume_reading)()
