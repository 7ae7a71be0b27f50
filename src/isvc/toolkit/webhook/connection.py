"""One connection to the webhooks: requests in, answers out, one at a time and in order.

Small on purpose: a review is one POST with one JSON answer, and an API server keeps its connections open. httptools
parses. Who sends too much or no HTTP is told so and disconnected; one who still sends may finish within a moment, so
that he gets to read the answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import NamedTuple, TypeAlias, cast

import httptools
import orjson

from isvc.kube.errors import ApiError, BadRequest, TooLarge

BODY_LIMIT = 7 * 2**20  # controller-runtime's: two objects of 3 MB and some
HEAD_LIMIT = 2**16
IDLE_SECONDS = 120.0  # longer than Go's 90, so that it is the client who hangs up
LINGER_SECONDS = 5.0


class Request(NamedTuple):
    method: str
    path: str
    query: str
    content_type: str
    body: bytes


class Reply(NamedTuple):
    status: int
    body: bytes

    @classmethod
    def of(cls, error: ApiError) -> Reply:
        return cls(error.status_code, orjson.dumps(error.status()))


Handler: TypeAlias = Callable[[Request], Reply | Awaitable[Reply]]
"""Answers a request, at once if it can; never raises."""


class Connection(asyncio.Protocol):
    def __init__(self, handler: Handler, connections: set[Connection]) -> None:
        self._handler = handler
        self._all = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Request] = deque()
        self._paused = self._refused = self._closing = self._last = False
        self._since = self._loop.time()  # of the request that is coming in, or of the last answer
        self._in_head = False

    @property
    def busy(self) -> bool:
        return self._task is not None

    def leave(self) -> None:
        """Close once the request under way is answered."""
        self._last = True
        if self._task is None:
            self._close()

    def leave_if_idle(self) -> None:
        if self._task is None and self._loop.time() - self._since > IDLE_SECONDS:
            self._close()

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._waiting.clear()
        self._all.discard(self)

    def pause_writing(self) -> None:
        self._pause(True)

    def resume_writing(self) -> None:
        self._pause(bool(self._waiting))

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > HEAD_LIMIT:
                self._refuse(BadRequest("the request's headers are too large", status=431))
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._last = True  # nobody offers one: the request is answered, what follows is not HTTP
        except httptools.HttpParserError:
            self._refuse(BadRequest("the request is not valid HTTP/1.1"))

    # httptools

    def on_message_begin(self) -> None:
        self._url = b""
        self._content_type = b""
        self._body: list[bytes] = []
        self._size = self._head_size = 0
        self._in_head = True
        self._since = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        match name.lower():
            case b"content-type":
                self._content_type = value
            case b"content-length" if int(value) > BODY_LIMIT:
                self._refuse(_too_large())
            case b"expect" if not self._refused:
                self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_headers_complete(self) -> None:
        self._in_head = False

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > BODY_LIMIT:
            self._refuse(_too_large())
        if not self._refused:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if self._refused:
            self._close()
            return
        path, _, query = self._url.decode("latin-1").partition("?")
        content_type = self._content_type.decode("latin-1").partition(";")[0].strip().lower()
        request = Request(self._parser.get_method().decode("latin-1"), path, query, content_type, b"".join(self._body))
        self._last = self._last or not self._parser.should_keep_alive()
        if self._task is None:
            self._begin(request)
        else:
            self._waiting.append(request)
            self._pause(True)

    # Answers

    def _begin(self, request: Request) -> None:
        answer = self._handler(request)
        if isinstance(answer, Reply):
            self._send(answer)
        else:
            self._task = self._loop.create_task(self._await(answer))

    async def _await(self, answer: Awaitable[Reply]) -> None:
        reply = await answer
        self._task = None
        self._send(reply)
        while self._waiting and self._task is None:
            self._begin(self._waiting.popleft())
        if not self._waiting:
            self._pause(False)

    def _pause(self, pause: bool) -> None:
        """Read no further while what was sent ahead is not answered, or answers are not fetched."""
        if pause != self._paused and not self._closing:
            self._paused = pause
            (self._transport.pause_reading if pause else self._transport.resume_reading)()

    def _send(self, reply: Reply) -> None:
        if self._closing:
            return
        self._since = self._loop.time()
        last = self._last and not self._waiting
        self._transport.write(_head(reply, last) + reply.body)
        if last:
            self._close()

    def _refuse(self, error: ApiError) -> None:
        """Answer what cannot be read; swallow what is still coming for a moment, then close."""
        if not self._refused:
            self._refused = True
            reply = Reply.of(error)
            self._transport.write(_head(reply, True) + reply.body)
            self._loop.call_later(LINGER_SECONDS, self._close)

    def _close(self) -> None:
        if not self._closing:
            self._closing = True
            self._transport.close()


CLOSE = "Connection: close\r\n"
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


def _head(reply: Reply, last: bool) -> bytes:
    return (
        f"HTTP/1.1 {reply.status} {_PHRASES.get(reply.status, '')}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(reply.body)}\r\n{CLOSE if last else ''}\r\n"
    ).encode()


def _too_large() -> TooLarge:
    return TooLarge(f"the review is larger than {BODY_LIMIT} bytes")
