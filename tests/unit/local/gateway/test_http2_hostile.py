"""Clients of HTTP/2 that want to do harm, and servers that do. Others go on being served."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest
from aiohttp import web
from h2 import events
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from tests.unit.local.gateway.frames import PSEUDO, RawClient, raw_client, status_of
from tests.unit.local.gateway.raw import exchange, named
from tests.unit.local.gateway.test_smuggling import Backend

from isvc.wire.http2.connection import Connection
from isvc.wire.http2.server import ServerConnection


@pytest.fixture
async def served(gateway, sites):
    gateway.service("s", (await sites(named("served")), True))
    gateway.route("h.test", ("s", 1))
    return gateway


async def still_serves(gateway) -> bool:
    return (await exchange(gateway.port, b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")).endswith(b"served")


async def ended_with(client: RawClient) -> ErrorCodes | None:
    """The code with which the gateway ended the connection; None if it said nothing, or the socket failed first."""
    said = None
    while not client.ended:
        event = await client.until(events.ConnectionTerminated)
        if isinstance(event, events.ConnectionTerminated):
            said = ErrorCodes(event.error_code or 0)
    return said


async def test_streams_that_are_opened_only_to_be_reset(gateway, sites):
    handled = 0

    async def slow(request: web.BaseRequest) -> web.Response:
        nonlocal handled
        handled += 1
        await asyncio.sleep(600)
        return web.Response()

    gateway.service("s", (await sites(slow), True))
    gateway.route("h.test", ("s", 1))
    async with raw_client(gateway.port) as client:
        for _ in range(2000):
            number = client.ask()
            client.h2.reset_stream(number)
        client.send()
        assert await ended_with(client) in (ErrorCodes.ENHANCE_YOUR_CALM, None)
        assert client.ended
    assert handled < 1000
    gateway.service("s", (await sites(named("served")), True))
    assert await still_serves(gateway)


def headers_without_end(client: RawClient) -> Iterator[Frame]:
    yield HeadersFrame(1, data=client.h2.encoder.encode(PSEUDO))
    for number in range(5000):
        yield ContinuationFrame(1, data=b"\0\x08x-%06d\x01y" % number)


def pings(client: RawClient) -> Iterator[Frame]:
    for _ in range(20_000):
        yield PingFrame(0, opaque_data=b"12345678")


def settings(client: RawClient) -> Iterator[Frame]:
    for number in range(20_000):
        yield SettingsFrame(0, settings={SettingCodes.INITIAL_WINDOW_SIZE: 1000 + number % 2})


def priorities(client: RawClient) -> Iterator[Frame]:
    for number in range(20_000):
        yield PriorityFrame(1, depends_on=0, stream_weight=number % 200)


def window_updates(client: RawClient) -> Iterator[Frame]:
    for _ in range(20_000):
        yield WindowUpdateFrame(0, window_increment=1)


def empty_data(client: RawClient) -> Iterator[Frame]:
    yield HeadersFrame(1, data=client.h2.encoder.encode(PSEUDO), flags=["END_HEADERS"])
    for _ in range(20_000):
        yield DataFrame(1, data=b"")


def more_data_than_the_window(client: RawClient) -> Iterator[Frame]:
    yield HeadersFrame(1, data=client.h2.encoder.encode(PSEUDO), flags=["END_HEADERS"])
    for _ in range(5000):
        yield DataFrame(1, data=b"x" * 16_384)


def a_bomb_of_headers(client: RawClient) -> Iterator[Frame]:
    """One long value, repeated by its index."""
    block = client.h2.encoder.encode([*PSEUDO, ("x-long", "y" * 3000)])
    yield HeadersFrame(1, data=block + b"\xbe" * 5000, flags=["END_HEADERS"])


FLOODS = [
    headers_without_end,
    pings,
    settings,
    priorities,
    window_updates,
    empty_data,
    more_data_than_the_window,
    a_bomb_of_headers,
]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
async def test_floods_end_the_connection_and_nothing_else(gateway, sites, flood):
    async def unread(request: web.BaseRequest) -> web.Response:
        await asyncio.sleep(600)
        return web.Response()

    gateway.service("s", (await sites(unread), True))
    gateway.route("h.test", ("s", 1))
    async with raw_client(gateway.port) as client:
        client.send(*flood(client))
        await ended_with(client)
        assert client.ended
    gateway.service("s", (await sites(named("served")), True))
    assert await still_serves(gateway)


async def test_answers_that_nobody_reads_do_not_pile_up(served, monkeypatch):
    """PINGs ask for answers; while those are not taken, nothing more is read."""
    written = 0
    plain = Connection.flush

    def counting(self: Connection) -> None:
        nonlocal written
        plain(self)
        written = max(written, self.transport.get_write_buffer_size())

    monkeypatch.setattr(Connection, "flush", counting)
    monkeypatch.setattr(Connection, "_achieved_nothing", lambda self, event: None)
    monkeypatch.setitem(ServerConnection._HANDLERS, events.PingReceived, lambda self, event: None)
    loop = asyncio.get_running_loop()
    with socket.socket() as flooding:
        flooding.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        flooding.setblocking(False)
        await loop.sock_connect(flooding, ("127.0.0.1", served.port))
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0).serialize()
        await loop.sock_sendall(flooding, preface)
        ping = PingFrame(0, opaque_data=b"12345678").serialize() * 10_000
        flood = loop.sock_sendall(flooding, ping * 1000)  # 170 MB, unless it is no longer read
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(flood, 5)
    assert written < 4 << 20
    assert await still_serves(served)


async def test_tiny_windows_are_served_byte_by_byte(served):
    async with raw_client(served.port) as client:
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1})
        client.send()
        await client.until(events.SettingsAcknowledged)
        number = client.ask()
        assert status_of(await client.until(events.ResponseReceived)) == 200
        for _ in range(10):
            if client.body.get(number) == b"served":
                break
            client.h2.increment_flow_control_window(1, number)
            client.send()
            await client.until(events.DataReceived)
        assert client.body[number] == b"served"


async def test_who_asks_and_takes_nothing_is_let_go(served, monkeypatch):
    monkeypatch.setattr(Connection, "patience", 0.2)
    async with raw_client(served.port) as client:
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        client.send()
        await client.until(events.SettingsAcknowledged)
        client.ask()
        assert isinstance(await client.until(events.StreamReset), events.StreamReset)


async def test_a_connection_that_is_not_used_ends(served, monkeypatch):
    monkeypatch.setattr(ServerConnection, "idle_seconds", 0.2)
    async with raw_client(served.port) as client:
        assert await ended_with(client) is ErrorCodes.NO_ERROR


BAD = {
    "a line break in a value": [*PSEUDO, ("x-a", "1\r\nx-b: 2")],
    "a zero byte": [*PSEUDO, ("x-a", "1\x002")],
    "a line break in a name": [*PSEUDO, ("x-a\r\nx-b", "1")],
    "upper case": [*PSEUDO, ("X-Upper", "1")],
    "a header of the connection": [*PSEUDO, ("connection", "close")],
    "transfer-encoding": [*PSEUDO, ("transfer-encoding", "chunked")],
    "te": [*PSEUDO, ("te", "chunked")],
    "two paths": [*PSEUDO, (":path", "/other")],
    "a late pseudo-header": [*PSEUDO, ("x", "1"), (":path", "/")],
    "no method": PSEUDO[1:],
    "no path": PSEUDO[:-1],
    "an empty path": [*PSEUDO[:-1], (":path", "")],
    "a line break in the path": [*PSEUDO[:-1], (":path", "/ HTTP/1.1\r\nX: y\r\n\r\n")],
    "a space in the path": [*PSEUDO[:-1], (":path", "/a b")],
    "a space in the method": [(":method", "GET / HTTP/1.1"), *PSEUDO[1:]],
    "a line break in the method": [(":method", "GET / HTTP/1.1\r\nX: y\r\n\r\nGET"), *PSEUDO[1:]],
    "two hosts": [*PSEUDO, ("host", "other.test")],
    "a user in the host": [*PSEUDO[:2], (":authority", "me:pw@h.test"), PSEUDO[3]],
    "two lengths": [*PSEUDO, ("content-length", "1"), ("content-length", "2")],
    "a length that is none": [*PSEUDO, ("content-length", "+1")],
    "an unknown pseudo-header": [*PSEUDO, (":protocol", "websocket")],
    "huge headers": [*PSEUDO, *((f"x-{number}", "y" * 1000) for number in range(100))],
}


@pytest.mark.parametrize("name", BAD)
async def test_what_would_be_another_request_to_a_server_of_http1_is_refused(gateway, name: str):
    async with Backend() as backend:
        gateway.service("s", (backend.port, True))
        gateway.route("h.test", ("s", 1))
        async with raw_client(gateway.port) as client:
            client.ask(BAD[name])
            event = await client.until(events.ResponseReceived)
            assert event is None or status_of(event) in (400, 502)
        assert backend.heard == b""


@pytest.mark.parametrize(("length", "body"), [("5", b"ab"), ("1", b"ab")])
async def test_a_body_has_the_length_that_it_says(gateway, length: str, body: bytes):
    async with Backend() as backend:
        gateway.service("s", (backend.port, True))
        gateway.route("h.test", ("s", 1))
        async with raw_client(gateway.port) as client:
            number = client.ask([(":method", "POST"), *PSEUDO[1:], ("content-length", length)], end=False)
            client.send(DataFrame(number, data=body, flags=["END_STREAM"]))
            await ended_with(client)
        assert not backend.heard.endswith(body)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        SettingsFrame(0).serialize() + HeadersFrame(1, data=b"\xff\xff\xff\xff", flags=["END_HEADERS"]).serialize(),
        SettingsFrame(0).serialize() + b"\xff" * 100,
    ],
    ids=["nothing", "http1", "no hpack", "no frames"],
)
async def test_a_server_that_does_not_speak_what_it_says(gateway, answer: bytes):
    async with Backend(answer) as backend:
        gateway.service("s", (backend.port, True))
        gateway.speaks_http2("s")
        gateway.route("h.test", ("s", 1))
        got = await exchange(gateway.port, b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert got.startswith((b"HTTP/1.1 502 ", b"HTTP/1.1 503 "))


@pytest.mark.parametrize(
    "headers",
    [
        [(":status", "200"), ("x", "1\r\ny: 2")],
        [(":status", "200"), ("x", "1\x00")],
        [(":status", "200"), ("x y", "1")],
        [(":status", "200"), ("X", "1")],
        [(":status", "200"), ("connection", "close")],
        [(":status", "200"), (":status", "201")],
        [(":status", "2000")],
        [(":status", "0")],
        [("x", "1")],
    ],
)
async def test_a_server_whose_headers_are_none(gateway, headers):
    encoder = Encoder()
    frames = SettingsFrame(0).serialize()
    frames += HeadersFrame(1, data=encoder.encode(headers), flags=["END_HEADERS", "END_STREAM"]).serialize()
    async with Backend(frames) as backend:
        gateway.service("s", (backend.port, True))
        gateway.speaks_http2("s")
        gateway.route("h.test", ("s", 1))
        got = await exchange(gateway.port, b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 502 ")
