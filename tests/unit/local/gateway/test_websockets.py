"""WebSockets through the gateway, and the tricks that upgrades invite."""

from __future__ import annotations

import asyncio

import pytest
import pytest_asyncio
from aiohttp import web
from tests.unit.local.gateway.raw import Backend, exchange, named
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

HANDSHAKE = (
    "GET / HTTP/1.1\r\nHost: h.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def dial(gateway, **options) -> connect:
    options.setdefault("host", "127.0.0.1")
    return connect("ws://h.test/chat", port=gateway.port, proxy=None, max_size=None, **options)


async def received(socket: ClientConnection) -> str | bytes:
    async with asyncio.timeout(60):
        return await socket.recv()


async def echo(request: web.BaseRequest) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(protocols=("chat",), max_msg_size=1 << 25)
    await socket.prepare(request)
    async for message in socket:
        if message.data == "leave":
            break
        await (socket.send_str if isinstance(message.data, str) else socket.send_bytes)(message.data)
    return socket


@pytest_asyncio.fixture(loop_scope="session")
async def echoing(gateway, sites):
    await gateway.service("s", (await sites(echo), True))
    await gateway.route("h.test", ("s", 1), timeouts={"request": "30s"})
    return gateway


async def test_messages_go_both_ways_and_what_was_negotiated_holds(echoing):
    async with dial(echoing, subprotocols=["chat"]) as socket:
        assert socket.subprotocol == "chat"
        assert socket.protocol.extensions  # compression is between client and server
        big = bytes(range(256)) * 40_000
        for message in ("hello", b"\x00\xff", big):
            await socket.send(message)
            assert await received(socket) == message


async def test_when_one_end_leaves_the_other_hears_of_it(echoing, sites):
    async with dial(echoing) as socket:
        await socket.send("leave")
        with pytest.raises(ConnectionClosed):
            await received(socket)
    left = asyncio.Event()

    async def listen(request: web.BaseRequest) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        try:
            await socket.receive()
        finally:
            left.set()
        return socket

    await echoing.service("s", (await sites(listen), True))
    async with dial(echoing) as socket:
        socket.transport.abort()
    async with asyncio.timeout(60):
        await left.wait()


async def test_the_limit_of_a_rule_is_for_the_answer_and_not_for_the_connection(gateway, sites):
    await gateway.service("s", (await sites(echo), True))
    await gateway.route("h.test", ("s", 1), timeouts={"request": "4s"})
    async with dial(gateway) as socket:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(4.5):
                await socket.recv()
        await socket.send("still here")
        assert await received(socket) == "still here"

    async def silent(request: web.BaseRequest) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    await gateway.service("s", (await sites(silent), True))
    await gateway.route("h.test", ("s", 1), timeouts={"request": "100ms"})
    with pytest.raises(InvalidStatus, match="504"):
        await dial(gateway)


async def test_a_server_that_sends_more_than_its_client_reads_has_to_wait(gateway, sites):
    sent, servers = 0, []

    async def flood(request: web.BaseRequest) -> web.WebSocketResponse:
        nonlocal sent
        servers.append(request.protocol)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        for sent in range(1, 129):  # noqa: B007 - counts
            await socket.send_bytes(bytes(1 << 20))
        return socket

    await gateway.service("s", (await sites(flood), True))
    await gateway.route("h.test", ("s", 1))
    async with dial(gateway, compression=None, max_queue=1) as socket:
        waited = 0
        async with asyncio.timeout(60):
            while waited < 100:  # a while without progress
                await asyncio.sleep(0.005)
                waited = waited + 1 if servers and servers[0].writing_paused else 0
        assert sent < 128
        for _ in range(128):
            assert await received(socket) == bytes(1 << 20)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ],
    ids=["refused", "another protocol", "no protocol"],
)
async def test_what_follows_a_handshake_that_failed_reaches_nobody(gateway, answer: bytes):
    """A proxy that believes in a tunnel which the server did not open lets requests pass unseen."""
    async with Backend(answer) as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(HANDSHAKE.encode() + b"GET /secret HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(60):
            answers = await reader.read()
        writer.close()
        assert answers.startswith(answer[:12])
        assert b"secret" not in backend.heard


async def test_what_is_no_handshake_goes_on_without_its_upgrade(gateway):
    async with Backend() as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        answer = await exchange(gateway.port, HANDSHAKE.replace("keep-alive, Upgrade", "keep-alive").encode())
    assert answer.endswith(b"ok")
    assert b"upgrade" not in backend.heard.lower()


async def test_a_page_of_another_site_opens_none(echoing):
    with pytest.raises(InvalidStatus, match="403"):
        await dial(echoing, origin="http://evil.test")
    async with dial(echoing, origin="http://allowed.test") as socket:
        await socket.send("hello")
        assert await received(socket) == "hello"


async def test_other_upgrades_are_ignored(gateway, sites):
    await gateway.service("s", (await sites(named("served")), True))
    await gateway.route("h.test", ("s", 1))
    head = HANDSHAKE.replace("WebSocket\r\n", "h2c\r\n")
    assert b"served" in await exchange(gateway.port, head.encode())
