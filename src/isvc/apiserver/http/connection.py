"""One client connection: requests in, responses out, in order.

Parsing is httptools' (the llhttp of Node). This class keeps one request under way at a time and queues what a client
sends ahead. What is too large or malformed is answered and the connection closed, without ever holding more than the
limits below; a client that is still sending may finish within `LINGER` seconds, so that it gets to read the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, cast
from urllib.parse import unquote

import httptools
import orjson

from isvc.apiserver.http.response import Response, Stream, head
from isvc.apiserver.request import Request
from isvc.kube.errors import ApiError, BadRequest, InternalError, TooLarge

MAX_BODY = 3 << 20
MAX_HEAD = 1 << 16
MAX_AHEAD = 4
LINGER = 5.0

log = logging.getLogger(__name__)

Handler = Callable[[Request, "Connection"], "Response | Awaitable[Response]"]


class Connection(asyncio.Protocol):
    def __init__(self, handler: Handler, connections: set[Connection]) -> None:
        self._handler = handler
        self._all = connections
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[Request] = deque()
        self._paused = False
        self._refused = False
        self._closing = False
        self._reset()
        self.gone: asyncio.Future[None] = self._loop.create_future()  # streams should end
        self.closed: asyncio.Future[None] = self._loop.create_future()  # nothing can be sent any more
        self._writable = asyncio.Event()
        self._writable.set()
        self.since = self._loop.time()  # of the last sign of life

    def _reset(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0
        self._in_head = False
        self._head_size = 0
        self._keep_alive = True

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._all.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.discard(self)
        self._closing = True
        self._waiting.clear()
        self._writable.set()
        for future in (self.gone, self.closed):
            if not future.done():
                future.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self.since = self._loop.time()
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(BadRequest("the request's headers are too large", status=431))
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._keep_alive = False  # an upgrade that nobody offers: the request is answered, the rest is not HTTP
        except httptools.HttpParserError:
            self._refuse(BadRequest("the request is not valid HTTP/1.1"))

    # httptools callbacks

    def on_message_begin(self) -> None:
        self._reset()
        self._in_head = True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._in_head = False
        length = self._headers.get("content-length", "")
        if length.isdigit() and int(length) > MAX_BODY:
            self._refuse(too_large())
        elif self._headers.get("expect", "").lower() == "100-continue" and not self._refused:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        if self._refused:
            return
        self._size += len(body)
        if self._size > MAX_BODY:
            self._refuse(too_large())
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._refused:
            self._close()
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        path, _, query = self._url.decode("latin-1").partition("?")
        if "%" in path:
            path = unquote(path)
        request = Request(self._parser.get_method().decode(), path, query, self._headers, body)
        self._keep_alive = self._parser.should_keep_alive()
        if self._task is None:
            self._begin(request)
            return
        self._waiting.append(request)
        if len(self._waiting) > MAX_AHEAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    # Requests

    def _begin(self, request: Request) -> None:
        """Answers at once where no waiting is needed, else in a task."""
        try:
            answer = self._handler(request, self)
        except Exception as error:
            answer = failure(request, error)
        if isinstance(answer, Response) and not isinstance(answer, Stream):
            self._send(answer, request)
            return
        self._task = self._loop.create_task(self._answer(answer, request))

    async def _answer(self, answer: Response | Awaitable[Response], request: Request) -> None:
        try:
            response = answer if isinstance(answer, Response) else await answer
            if isinstance(response, Stream):
                await self._stream(response, request)
            else:
                self._send(response, request)
        except Exception as error:
            self._send(failure(request, error), request)
        finally:
            self._task = None
            if not self._closing:
                self._next()

    def _next(self) -> None:
        while self._waiting and self._task is None and not self._closing:
            self._begin(self._waiting.popleft())
        if self._paused and not self._waiting and not self._closing:
            self._paused = False
            self._transport.resume_reading()

    def _send(self, response: Response, request: Request) -> None:
        if self._closing:
            return
        close = not self._keep_alive
        body = b"" if request.method == "HEAD" else response.body
        self._transport.write(head(response, request.warnings, close) + body)
        if close:
            self._close()

    async def _stream(self, response: Stream, request: Request) -> None:
        if self._closing:
            return
        self._transport.write(head(response, request.warnings, close=False, chunked=True))
        try:
            await response.produce(self)
        except Exception:
            log.exception("%s %s broke off", request.method, request.path)
            self._close()
            return
        if not self._closing:
            self._transport.write(b"0\r\n\r\n")
        if not self._keep_alive:
            self._close()

    # Writer, for streams

    def write(self, data: bytes) -> None:
        if not self._closing:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def backlog(self) -> int:
        return self._transport.get_write_buffer_size()

    async def drain(self) -> None:
        await self._writable.wait()

    # Ends

    def _refuse(self, error: ApiError) -> None:
        """Answers an unreadable request; swallows what is still coming for a moment, then closes."""
        if self._refused:
            return
        self._refused = True
        self._transport.write(head(Response.error(error), [], close=True) + Response.error(error).body)
        self._loop.call_later(LINGER, self._close)

    def _close(self) -> None:
        if not self._closing:
            self._closing = True
            self._transport.close()

    @property
    def idle(self) -> bool:
        return self._task is None

    def leave(self) -> None:
        """Ends streams and, once the request under way is answered, the connection."""
        self._keep_alive = False
        if not self.gone.done():
            self.gone.set_result(None)
        if self._task is None:
            self._close()

    def abort(self) -> None:
        self._closing = True
        self._transport.abort()

    def peer_certificate(self) -> dict[str, Any] | None:
        certificate: dict[str, Any] | None = self._transport.get_extra_info("peercert")
        return certificate


def too_large() -> TooLarge:
    return TooLarge(f"Request entity too large: limit is {MAX_BODY}")


def failure(request: Request, error: Exception) -> Response:
    """The answer to a request that failed: what it raised, or 500 with the details in our log only."""
    if isinstance(error, ApiError):
        return Response.error(error)
    if isinstance(error, RecursionError | orjson.JSONEncodeError):
        return Response.error(BadRequest("the object is nested too deeply"))
    log.error("%s %s failed", request.method, request.path, exc_info=error)
    return Response.error(InternalError("Internal error occurred: see the API server's log"))
