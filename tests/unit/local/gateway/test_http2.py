"""HTTP/2 through the gateway, to servers that speak HTTP/1.1 and to those that do not."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from h2 import events
from tests.unit.local.gateway.frames import PSEUDO, RawClient, raw_client, status_of
from tests.unit.local.gateway.grpc_echo import echoing
from tests.unit.local.gateway.raw import exchange, named, upper

from isvc.wire.http2.client import Pool
from isvc.wire.http2.stream import Headers, Stream

HEAD: Headers = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"h.test"), (b":path", b"/a?b=c")]


@pytest.fixture
async def pool():
    pool = Pool()
    yield pool
    await pool.close()


async def whole(stream: Stream) -> bytes:
    async with asyncio.timeout(60):
        return b"".join([piece async for piece in stream])


async def test_a_request_reaches_a_server_of_http1(gateway, sites, pool):
    async def echo(request: web.BaseRequest) -> web.Response:
        heard = f"{request.method} {request._message.path} {request.headers['Host']} {request.headers['Cookie']} "
        return web.Response(body=heard.encode() + await request.read(), headers={"X-Answer": "1"}, status=201)

    gateway.service("s", (await sites(web.Server(echo)), True))
    gateway.route("h.test", ("s", 1))
    for size in (0, 10, 1 << 19):
        cookies: Headers = [(b"cookie", b"a=1"), (b"cookie", b"b=2")]
        stream = await pool.open("127.0.0.1", gateway.port, HEAD + cookies)
        await stream.send(b"x" * size, end=True)
        head = dict(await stream.head())
        assert (head[b":status"], head[b"x-answer"]) == (b"201", b"1")
        assert not {b"connection", b"transfer-encoding"} & set(head)
        assert await whole(stream) == b"POST /a?b=c h.test a=1; b=2 " + b"x" * size
        stream.close()


async def test_bodies_stream_both_ways(gateway, sites, pool):
    gateway.service("s", (await sites(upper), True))
    gateway.route("h.test", ("s", 1))
    stream = await pool.open("127.0.0.1", gateway.port, HEAD)
    async with asyncio.timeout(60):
        await stream.send(b"one")
        await stream.head()
        assert await stream.read() == b"ONE"
        await stream.send(b"two", end=True)
        assert await stream.read() == b"TWO"
        assert await stream.read() == b""
    stream.close()


async def test_refusals_and_the_guard_are_the_same(gateway, sites, pool):
    gateway.service("s", (await sites(named("served")), True))
    gateway.route("h.test", ("s", 1))
    for headers, status in (
        ([(b"origin", b"http://evil.test")], b"403"),
        ([(b"sec-fetch-site", b"cross-site")], b"403"),
        ([(b"origin", b"http://allowed.test")], b"200"),
    ):
        stream = await pool.open("127.0.0.1", gateway.port, HEAD + headers, end=True)
        assert dict(await stream.head())[b":status"] == status
        stream.close()


async def test_a_client_of_http1_reaches_a_server_of_http2_alone(gateway):
    async with echoing() as (_, port):
        gateway.service("s", (port, True))
        gateway.speaks_http2("s")
        gateway.route("h.test", ("s", 1))
        framed = b"\0\0\0\0\2hi"
        head = "POST /echo.Echo/Unary HTTP/1.1\r\nHost: h.test\r\nContent-Type: application/grpc\r\nTE: trailers\r\n"
        request = f"{head}Connection: close\r\nContent-Length: {len(framed)}\r\n\r\n".encode() + framed
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(request)
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"\0\0\0\0\2HI" in answer


async def test_one_port_tells_them_apart_however_slowly_the_first_bytes_come(gateway, sites):
    gateway.service("s", (await sites(named("served")), True))
    gateway.route("h.test", ("s", 1))
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    client = RawClient(reader, writer)
    client.h2.initiate_connection()
    for byte in client.h2.data_to_send():
        writer.write(bytes([byte]))
        await asyncio.sleep(0)
    number = client.ask()
    assert status_of(await client.until(events.ResponseReceived)) == 200
    await client.until(events.StreamEnded)
    assert client.body[number] == b"served"
    writer.close()
    for first in (b"P", b"PR", b"PO"):
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(first)
        await asyncio.sleep(0)
        writer.write(b"X / HTTP/1.1\r\nHost: h.test\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(60):
            assert (await reader.read()).startswith(b"HTTP/1.")
        writer.close()
    assert (await exchange(gateway.port, b"PUT / HTTP/1.1\r\nHost: h.test\r\n\r\n")).endswith(b"served")


async def test_head_and_empty_answers(gateway, sites):
    async def nothing(request: web.BaseRequest) -> web.Response:
        return web.Response(status=204) if request.method == "GET" else web.Response(text="twelve bytes")

    gateway.service("s", (await sites(nothing), True))
    gateway.route("h.test", ("s", 1))
    async with raw_client(gateway.port) as client:
        client.ask()
        assert status_of(await client.until(events.ResponseReceived)) == 204
        number = client.ask([(":method", "HEAD"), *PSEUDO[1:]])
        assert status_of(await client.until(events.ResponseReceived)) == 200
        await client.until(events.StreamEnded)
        assert not client.body.get(number)


async def test_a_client_that_leaves_half_way_ends_the_request_behind(gateway, sites):
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.Response:
        arrived.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return web.Response()

    gateway.service("s", (await sites(slow), True))
    gateway.route("h.test", ("s", 1))
    for leave in ("reset", "cut"):
        arrived.clear()
        ended.clear()
        async with raw_client(gateway.port) as client:
            number = client.ask()
            async with asyncio.timeout(60):
                await arrived.wait()
                if leave == "reset":
                    client.h2.reset_stream(number)
                    client.send()
                else:
                    client.writer.transport.abort()
                await ended.wait()
