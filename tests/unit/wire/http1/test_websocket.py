"""WebSockets on raw sockets: what honest peers send, and what others do."""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import AsyncIterator

import pytest
from tests.waiting import until

from isvc.wire.http1 import websocket
from isvc.wire.http1.connection import Connection, Handler
from isvc.wire.http1.message import Request, Response, Upgrade
from isvc.wire.http1.server import HttpServer
from isvc.wire.http1.tunnel import Tunnel

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: here\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: unknown, echo\r\n"
    b"Sec-WebSocket-Key: " + base64.b64encode(b"0123456789abcdef") + b"\r\n\r\n"
)


class Echo(Handler[Request]):
    """Sends every message back."""

    request_type = Request
    ended = 0

    def handle(self, request: Request, connection: Connection[Request]) -> Response:
        _, headers = websocket.accept(request.headers, ["echo"])
        return Upgrade(headers, self._echo)

    async def _echo(self, tunnel: Tunnel) -> None:
        socket = websocket.WebSocket(tunnel, max_size=1 << 16)
        while message := await socket.receive():
            await socket.send(message)
        Echo.ended += 1

    def failure(self, request: Request, error: Exception) -> Response:
        return Response(str(error).encode(), 400)


@pytest.fixture
async def port() -> AsyncIterator[int]:
    Echo.ended = 0
    server = HttpServer(Echo(), idle_seconds=600)
    _, port = await server.listen("127.0.0.1", 0)
    yield port
    await server.stop(drain_seconds=0)


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def connect(cls, port: int, ahead: bytes = b"") -> Peer:
        """`ahead` is sent without waiting for the answer to the handshake."""
        peer = cls(*await asyncio.open_connection("127.0.0.1", port))
        peer.writer.write(HANDSHAKE + ahead)
        head = await peer.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 ")
        assert b"Sec-WebSocket-Protocol: echo\r\n" in head
        return peer

    async def receive(self) -> tuple[int, bytes]:
        first, size = await self.reader.readexactly(2)
        if size == 126:
            (size,) = struct.unpack(">H", await self.reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack(">Q", await self.reader.readexactly(8))
        return first & 15, await self.reader.readexactly(size)

    async def closed_with(self) -> int:
        opcode, payload = await self.receive()
        assert opcode == CLOSE
        assert await self.reader.read() == b""
        return int.from_bytes(payload[:2], "big")


def frame(opcode: int, payload: bytes, *, last: bool = True, masked: bool = True) -> bytes:
    size = len(payload)
    length = bytes((size,)) if size < 126 else b"\x7e" + struct.pack(">H", size)
    if not masked:
        return bytes((opcode | 0x80 * last,)) + length + payload
    mask = os.urandom(4)
    hidden = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return bytes((opcode | 0x80 * last, length[0] | 0x80)) + length[1:] + mask + hidden


async def test_messages_come_whole_however_they_were_sent(port):
    peer = await Peer.connect(port, ahead=frame(TEXT, b"early"))
    assert await peer.receive() == (BINARY, b"early")
    peer.writer.write(frame(BINARY, b"") + frame(TEXT, b"in ", last=False) + frame(PING, b"?") + frame(0, b"parts"))
    assert await peer.receive() == (PONG, b"?")
    assert await peer.receive() == (BINARY, b"in parts")
    for byte in frame(BINARY, b"slow"):
        peer.writer.write(bytes((byte,)))
        await peer.writer.drain()
    assert await peer.receive() == (BINARY, b"slow")
    peer.writer.write(frame(CLOSE, b"\x03\xe8bye"))
    assert await peer.closed_with() == 1000


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (frame(BINARY, b"bare", masked=False), 1002),
        (b"\x82\xff" + struct.pack(">Q", 1 << 40) + b"mask", 1009),
        (frame(BINARY, b"unfinished", last=False) * 2, 1002),
        (frame(BINARY, b"x" * 60_000, last=False) + frame(0, b"x" * 60_000), 1009),
        (frame(0, b"continues nothing"), 1002),
        (frame(5, b"unknown opcode"), 1002),
        (bytes((0xF2, 0x80)) + b"mask", 1002),
        (frame(PING, b"x" * 126), 1002),
        (frame(CLOSE, b"\x00\x01"), 1002),
        (b"GET / HTTP/1.1\r\n\r\n", 1002),
    ],
    ids=["bare", "huge", "twice", "too long", "continued", "opcode", "reserved", "long ping", "bad close", "HTTP"],
)
async def test_what_breaks_the_protocol_ends_the_connection(port, bad, code):
    peer = await Peer.connect(port, ahead=bad)
    assert await peer.closed_with() == code
    await until(lambda: Echo.ended == 1)
    again = await Peer.connect(port, ahead=frame(BINARY, b"others go on"))
    assert await again.receive() == (BINARY, b"others go on")


async def test_thousands_of_pings_cost_the_one_who_sends_them(port):
    """A peer that does not read its answers is not read from either, so that nothing piles up."""
    peer = await Peer.connect(port)
    ping = frame(PING, b"x" * 125)
    pings = 0
    stuck = False
    while not stuck:
        peer.writer.write(ping * 1000)
        pings += 1000
        try:
            await asyncio.wait_for(peer.writer.drain(), 0.5)
        except TimeoutError:
            stuck = True
    assert pings * len(ping) < 64 << 20
    for _ in range(pings):
        assert await peer.receive() == (PONG, b"x" * 125)


async def test_a_peer_that_vanishes_within_a_frame_is_noticed(port):
    peer = await Peer.connect(port, ahead=frame(BINARY, b"never whole")[:5])
    peer.writer.transport.abort()
    await until(lambda: Echo.ended == 1)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"echo", b"chat", b"none of the WebSocket protocols unknown, chat is known here, only echo"),
        (b"Version: 13", b"Version: 8", b"not a WebSocket handshake of version 13"),
    ],
)
async def test_a_handshake_that_cannot_be_accepted_is_answered(port, old, new, why):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HANDSHAKE.replace(old, new) + frame(BINARY, b"ahead"))
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert why in answer
