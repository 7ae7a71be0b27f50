"""One client connection: requests in, responses out, in order.

Parsing is httptools' (the llhttp of Node). One request is handled at a time. What a client sends ahead is queued, and
reading pauses while the queue is long. A request for an upgrade is the last of its connection. Oversized or malformed
requests are answered with 4xx; the connection then lingers briefly, so that the client can read the response before the
close.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast
from urllib.parse import unquote

import httptools

from isvc.wire.http1.message import Request, Response, Stream, Upgrade
from isvc.wire.http1.tunnel import Tunnel

MAX_HEAD = 1 << 16
HEAD_SECONDS = 30.0
MAX_AHEAD = 4
LINGER_SECONDS = 5.0

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Request)


class Handler(Generic[R]):
    """What a server serves. Subclasses say what a request is, how it is handled, and what errors look like."""

    max_body = 1 << 20
    request_type: type[R]

    def handle(self, request: R, connection: Connection[R]) -> Response | Awaitable[Response]:
        """Returns the response, at once where no waiting is needed."""
        raise NotImplementedError

    def refusal(self, status: int, message: str) -> Response:
        """Returns the response to what is too large, or is not HTTP."""
        raise NotImplementedError

    def failure(self, request: R, error: Exception) -> Response:
        """Returns the response to a request whose handling raised."""
        raise NotImplementedError

    def head(self, response: Response, request: R | None, *, close: bool, chunked: bool = False) -> bytes:
        """Returns status line and headers; `request` is None for one that could not be read."""
        return response.head(close=close, chunked=chunked)


class Connection(asyncio.Protocol, Generic[R]):
    def __init__(
        self,
        handler: Handler[R],
        on_open: Callable[[Connection[R]], None],
        on_lost: Callable[[Connection[R]], None],
        on_held: Callable[[int], None] = lambda change: None,
    ) -> None:
        """`on_held` is called with the bytes of unfinished bodies by which the connection holds more or less."""
        self._handler, self._on_held = handler, on_held
        self.held, self.began = 0, 0.0  # bytes of a body that is not complete yet, and when its request began
        self._on_open, self._on_lost = on_open, on_lost
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._task: asyncio.Task[None] | None = None
        self._waiting: deque[R] = deque()
        self._tunnel: Tunnel | None = None  # once another protocol was asked for
        self._paused = self._refused = self._closing = self._last = self._in_head = False
        self.since = self._loop.time()  # of the last sign of life, or of the first byte of headers not yet complete
        self.streaming: R | None = None  # the request that is being answered at length
        self.gone: asyncio.Future[None] = self._loop.create_future()  # streams should end
        self.answered: asyncio.Future[None] = self._loop.create_future()  # nothing more will be sent
        self.closed: asyncio.Future[None] = self._loop.create_future()  # nothing can be sent any more
        self._writable = asyncio.Event()
        self._writable.set()

    def peer_certificate(self) -> dict[str, Any] | None:
        """Returns the certificate that the client showed, as `ssl.SSLSocket.getpeercert` does."""
        certificate: dict[str, Any] | None = self._transport.get_extra_info("peercert")
        return certificate

    # For servers

    @property
    def is_idle(self) -> bool:
        return self._task is None and not self._closing

    def close_if_idle(self, seconds: float) -> None:
        """Closes when nothing is under way and nothing was heard for so long, or when headers come too slowly.

        A client that does not even read what was left to send is cut off the next time.
        """
        limit = min(seconds, HEAD_SECONDS) if self._in_head else seconds
        if self._task is not None or self._loop.time() - self.since <= limit:
            return
        if self._closing:
            self._transport.abort()
        self._close()

    def leave(self) -> None:
        """Ends streams and, once the requests under way are answered, the connection."""
        self._last = True
        _resolve(self.gone)
        if self._task is None:
            self._close()

    def answer_once_more(self) -> None:
        """Makes the next answer the last one: whoever asks again connects anew."""
        self._last = True

    def abort(self) -> None:
        self._closing = True
        self._let_go()
        self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but name
        self._on_open(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_lost(self)
        self._closing = True
        self._let_go()
        del self._parser  # which refers to us: with it goes all of a connection, without the garbage collector
        self._waiting.clear()
        self._writable.set()
        if self._tunnel is not None:
            self._tunnel.feed_eof()
        for future in (self.gone, self.answered, self.closed):
            _resolve(future)

    def pause_writing(self) -> None:
        self._writable.clear()
        if self._tunnel is None:
            self._pause(True)

    def resume_writing(self) -> None:
        self._writable.set()
        self._pause(len(self._waiting) > MAX_AHEAD)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        if not self._in_head:
            self.since = self._loop.time()
        if self._tunnel is not None:
            self._tunnel.feed(data)
            return
        if self._in_head:
            self._head_size += len(data)
            if self._head_size > MAX_HEAD:
                self._refuse(431, "the request's headers are too large")
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._leave_http(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(400, "the request is not valid HTTP/1.1")

    # httptools callbacks

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = self._head_size = 0
        self._in_head = True
        self.began = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:  # a trailer, which nobody here asks for
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        self._in_head = False
        length = self._headers.get("content-length", "")
        if length.isdigit() and int(length) > self._handler.max_body:
            self._refuse_body()
        elif self._headers.get("expect", "").lower() == "100-continue" and not self._refused:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > self._handler.max_body:
            self._refuse_body()
        if not self._refused and not self._closing:
            self._body.append(body)
            self.held += len(body)
            self._on_held(len(body))

    def _let_go(self) -> None:
        """Holds no body any more that is not complete."""
        held, self.held, self._body = self.held, 0, []
        if held:
            self._on_held(-held)

    def _leave_http(self, ahead: bytes) -> None:
        if self._tunnel is not None:
            self._tunnel.feed(ahead)

    def on_message_complete(self) -> None:
        if self._refused:
            self._close()
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._let_go()
        path, _, query = self._url.decode("latin-1").partition("?")
        if "%" in path:
            path = unquote(path)
        request = self._handler.request_type(
            self._parser.get_method().decode("latin-1"), path, query, self._headers, body
        )
        if self._parser.should_upgrade():
            self._last, self._tunnel = True, Tunnel(self._transport, self._writable.wait, self.gone)
        self._last = self._last or not self._parser.should_keep_alive()
        if self._task is None:
            self._begin(request)
            return
        self._waiting.append(request)
        if len(self._waiting) > MAX_AHEAD:
            self._pause(True)

    # Responses

    def _begin(self, request: R) -> None:
        """Answers at once where no waiting is needed, else in a task."""
        try:
            answer = self._handler.handle(request, self)
        except Exception as error:
            answer = self._handler.failure(request, error)
        if isinstance(answer, Response) and not isinstance(answer, Stream | Upgrade):
            self._send(answer, request)
            return
        self._task = self._loop.create_task(self._answer(answer, request))

    async def _answer(self, answer: Response | Awaitable[Response], request: R) -> None:
        try:
            response = answer if isinstance(answer, Response) else await answer
            if isinstance(response, Stream):
                await self._stream(response, request)
            elif isinstance(response, Upgrade):
                await self._switch(response, request)
            else:
                self._send(response, request)
        except Exception as error:
            self._send(self._handler.failure(request, error), request)
        finally:
            self._task = None
            self._next()

    def _next(self) -> None:
        while self._waiting and self._task is None and not self._closing:
            self._begin(self._waiting.popleft())
        if not self._waiting and self._writable.is_set():
            self._pause(False)

    def _send(self, response: Response, request: R) -> None:
        if self._closing:
            return
        self.since = self._loop.time()
        close = self._last and not self._waiting
        body = b"" if request.method == "HEAD" else response.body
        self._transport.write(self._handler.head(response, request, close=close) + body)
        if close:
            self._close()

    async def _stream(self, response: Stream, request: R) -> None:
        """Produces it also for a client that has left, for who produces may hold something that has to be released."""
        if not self._closing:
            self._transport.write(self._handler.head(response, request, close=False, chunked=True))
        self.streaming = request
        try:
            await response.produce(self)
        except Exception:
            log.exception("%s %s broke off", request.method, request.path)
            self._close()
            return
        finally:
            self.streaming = None
        self.since = self._loop.time()
        if not self._closing:
            self._transport.write(b"0\r\n\r\n")
        if self._last and not self._waiting:
            self._close()

    async def _switch(self, response: Upgrade, request: R) -> None:
        assert self._tunnel is not None, "an upgrade that the client did not ask for"
        if not self._closing:
            self._transport.write(self._handler.head(response, request, close=False))
        self.streaming = request
        try:
            await response.serve(self._tunnel)
        except Exception:
            log.exception("%s %s broke off", request.method, request.path)
        self.streaming = None
        self._close()

    def _pause(self, pause: bool) -> None:
        if pause != self._paused and not self._closing:
            self._paused = pause
            (self._transport.pause_reading if pause else self._transport.resume_reading)()

    # Writer, for streams

    def write(self, data: bytes) -> None:
        if not self._closing:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))

    def backlog(self) -> int:
        return self._transport.get_write_buffer_size()

    async def drain(self) -> None:
        await self._writable.wait()

    # Ends

    def _refuse_body(self) -> None:
        self._refuse(413, f"Request entity too large: limit is {self._handler.max_body}")

    def _refuse(self, status: int, message: str) -> None:
        if self._refused:
            return
        self._refused = True
        self._let_go()
        response = self._handler.refusal(status, message)
        self._transport.write(self._handler.head(response, None, close=True) + response.body)
        self._loop.call_later(LINGER_SECONDS, self._close)

    def _close(self) -> None:
        if not self._closing:
            self._closing = True
            _resolve(self.answered)
            self._transport.close()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
