"""Requests that come over HTTP/2, in the form that the rest of the gateway knows: that of aiohttp."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import quote

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from isvc.wire.http1.end_to_end import HOP_BY_HOP
from isvc.wire.http2.connection import Connection
from isvc.wire.http2.stream import Headers, Stream

HTTP2: Final = HttpVersion(2, 0)
# What gRPC calls the refusals of the gateway.
_GRPC_CODES: Final = {400: 13, 403: 7, 404: 12, 407: 16, 500: 13, 502: 14, 503: 14, 504: 4}
_UNKNOWN: Final = 2


class Http2Request(web.BaseRequest):
    ATTRS = web.BaseRequest.ATTRS | frozenset(("stream",))

    def __init__(self, stream: Stream, connection: Connection) -> None:
        pseudo, headers = _taken_apart(stream.headers)
        path = pseudo.get(":path", "")
        message = RawRequestMessage(
            pseudo.get(":method", ""), path, HTTP2, CIMultiDictProxy(headers), (), False, None, False, False, _url(path)
        )
        task = asyncio.current_task()
        assert task is not None
        super().__init__(
            message,
            EMPTY_PAYLOAD if stream.is_empty else stream,  # type: ignore[arg-type]
            _Peer(stream, connection),  # type: ignore[arg-type]
            _Writer(stream),
            task,
            asyncio.get_running_loop(),
        )
        self.stream = stream

    @property
    def is_grpc(self) -> bool:
        return self.headers.get("Content-Type", "").startswith("application/grpc")

    async def read(self) -> bytes:
        if self._read_bytes is None:
            self._read_bytes = b"".join([piece async for piece in self.stream])
        return self._read_bytes

    async def answer(self, response: web.StreamResponse) -> None:
        """Sends what is not sent yet. Clients of gRPC show no refusals but those of gRPC."""
        if self.stream.has_sent_all:
            return
        if self.is_grpc and isinstance(response, web.Response) and "X-Isvc-Gateway" in response.headers:
            self.stream.send_headers(_grpc_refusal(response), end=True)
            return
        await response.prepare(self)
        await response.write_eof()


def _taken_apart(headers: Headers) -> tuple[dict[str, str], CIMultiDict[str]]:
    """Pseudo-headers, and the others as HTTP/1.1 has them: with a Host, and with one Cookie."""
    pseudo: dict[str, str] = {}
    others: CIMultiDict[str] = CIMultiDict()
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name[0] == ":":
            pseudo[name] = value
        else:
            others.add(name, value)
    authority = pseudo.get(":authority")
    if authority and others.get("Host", authority) == authority:
        others["Host"] = authority
    elif authority:
        others.add("Host", authority)  # two that differ, which is refused further on
    if "Cookie" in others:
        others["Cookie"] = "; ".join(others.getall("Cookie"))
    return pseudo, others


def _url(path: str) -> URL:
    before, _, query = path.partition("?")
    return URL.build(path=before if before.startswith("/") else "/", query_string=query, encoded=True)


def _grpc_refusal(response: web.Response) -> Headers:
    reason = quote(response.text or "", safe=" !\"#$&'()*+,-./:;<=>?@[]^_`{|}~")
    code = _GRPC_CODES.get(response.status, _UNKNOWN)
    return [
        (b":status", b"200"),
        (b"content-type", b"application/grpc"),
        (b"grpc-status", b"%d" % code),
        (b"grpc-message", reason.encode()),
    ]


class _Transport:
    """A stream where a connection is expected: closing it ends the stream alone."""

    def __init__(self, stream: Stream, transport: asyncio.Transport) -> None:
        self._stream = stream
        self._transport = transport

    def close(self) -> None:
        self._stream.reset()

    def is_closing(self) -> bool:
        return self._stream.error is not None or self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)


class _Peer:
    """What aiohttp asks of the connection that a request came by."""

    def __init__(self, stream: Stream, connection: Connection) -> None:
        self.transport = _Transport(stream, connection.transport)
        self.ssl_context = connection.ssl_context
        self.peername = connection.peername
        self.sockname = connection.sockname


class _Writer(AbstractStreamWriter):
    """By which aiohttp's responses are sent."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        status = status_line.split(" ", 2)[1]
        self._stream.send_headers([(b":status", status.encode()), *encoded(headers)])

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self.output_size += len(chunk)
        await self._stream.send(bytes(chunk))

    async def write_eof(self, chunk: bytes = b"") -> None:
        self.output_size += len(chunk)
        await self._stream.send(chunk, end=True)

    async def drain(self) -> None:
        """Every write waits until the peer keeps up."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        raise NotImplementedError

    def enable_chunking(self) -> None:
        """Frames have lengths."""


def encoded(headers: CIMultiDict[str]) -> Headers:
    """Writes headers in lower case, without those of a connection. Raises ValueError for what is no header."""
    lower = ((name.lower(), value) for name, value in headers.items())
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in lower if name not in HOP_BY_HOP]
