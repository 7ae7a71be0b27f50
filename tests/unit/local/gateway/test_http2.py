"""HTTP/2 through the gateway: clients that do no harm, and those that want to. Others go on being served."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from aiohttp import web
from h2 import events
from h2.settings import SettingCodes
from hyperframe.frame import ContinuationFrame, DataFrame, Frame, HeadersFrame, PingFrame, SettingsFrame
from tests.unit.local.gateway.conftest import running_gateway
from tests.unit.local.gateway.frames import PSEUDO, RawClient, raw_client, status_of
from tests.unit.local.gateway.grpc_echo import echoing
from tests.unit.local.gateway.raw import Backend, exchange, named

from isvc.local.gateway.envoy.bootstrap import Front, Limits
from isvc.serving.workload.service import H2C


async def still_serves(gateway) -> bool:
    return (await exchange(gateway.port, b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")).endswith(b"served")


async def test_a_request_reaches_a_server_of_http1(gateway, sites):
    async def echo(request: web.BaseRequest) -> web.Response:
        heard = f"{request.method} {request._message.path} {request.headers['Host']} {request.headers['Cookie']}"
        return web.Response(text=heard, headers={"X-Answer": "1"}, status=201)

    await gateway.service("s", (await sites(web.Server(echo)), True))
    await gateway.route("h.test", ("s", 1))
    async with raw_client(gateway.port) as client:
        asked = [*PSEUDO[:3], (":path", "/a?b=c"), ("cookie", "a=1"), ("cookie", "b=2")]
        number = client.ask(asked)
        assert status_of(await client.until(events.ResponseReceived)) == 201
        await client.until(events.StreamEnded)
        assert client.body[number] == b"GET /a?b=c h.test a=1; b=2"


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("origin", "http://evil.test", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("origin", "http://allowed.test", 200),
    ],
)
async def test_the_guard_is_the_same(gateway, sites, name: str, value: str, status: int):
    await gateway.service("s", (await sites(named("served")), True))
    await gateway.route("h.test", ("s", 1))
    async with raw_client(gateway.port) as client:
        client.ask([*PSEUDO, (name, value)])
        assert status_of(await client.until(events.ResponseReceived)) == status


async def test_a_client_of_http1_reaches_a_server_of_http2_alone(gateway):
    async with echoing() as (_, port):
        await gateway.service("s", (port, True), appProtocol=H2C)
        await gateway.route("h.test", ("s", 1))
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


async def test_a_service_may_speak_another_protocol_from_now_on(gateway):
    """Envoy makes its cluster anew, and must not wait for endpoints that nobody sends again: 15 s without any news."""
    async with echoing() as (_, port):
        for protocol in ({}, {"appProtocol": H2C}, {}):
            await gateway.service("s", (port, True), **protocol)
        await gateway.service("s", (port, False), appProtocol=H2C)
    assert "initial fetch timed out" not in gateway.log.read_text()


async def test_a_client_that_leaves_half_way_ends_the_request_behind(gateway, sites):
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.Response:
        arrived.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        return web.Response()

    await gateway.service("s", (await sites(slow), True))
    await gateway.route("h.test", ("s", 1))
    async with raw_client(gateway.port) as client, asyncio.timeout(60):
        number = client.ask()
        await arrived.wait()
        client.h2.reset_stream(number)
        client.send()
        await ended.wait()


# -- floods -----------------------------------------------------------------------------------------------------------


def resets(client: RawClient) -> Iterator[Frame]:
    for _ in range(2000):
        client.h2.reset_stream(client.ask())
    return iter(())


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


def empty_data(client: RawClient) -> Iterator[Frame]:
    yield HeadersFrame(1, data=client.h2.encoder.encode(PSEUDO), flags=["END_HEADERS"])
    for _ in range(20_000):
        yield DataFrame(1, data=b"")


FLOODS = [resets, headers_without_end, pings, settings, empty_data]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__)
async def test_floods_end_the_connection_and_nothing_else(gateway, sites, flood):
    async def unread(request: web.BaseRequest) -> web.Response:
        await asyncio.sleep(600)
        return web.Response()

    await gateway.service("s", (await sites(unread), True))
    await gateway.route("h.test", ("s", 1))
    async with raw_client(gateway.port) as client:
        client.send(*flood(client))
        said = await client.until(events.ConnectionTerminated)
        assert said is not None or client.ended
    await gateway.service("s", (await sites(named("served")), True))
    assert await still_serves(gateway)


async def test_who_asks_and_takes_nothing_is_let_go(tmp_path, sites):
    async with running_gateway(tmp_path, Front(limits=Limits(flush=0.2))) as quick:
        await quick.service("s", (await sites(named("served")), True))
        await quick.route("h.test", ("s", 1))
        async with raw_client(quick.port) as client:
            client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
            client.send()
            await client.until(events.SettingsAcknowledged)
            client.ask()
            assert isinstance(await client.until(events.StreamReset), events.StreamReset)


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
    "a user in the host": [*PSEUDO[:2], (":authority", "me:pw@h.test"), PSEUDO[3]],
    "two lengths": [*PSEUDO, ("content-length", "1"), ("content-length", "2")],
    "a length that is none": [*PSEUDO, ("content-length", "+1")],
    "an unknown pseudo-header": [*PSEUDO, (":protocol", "websocket")],
    "huge headers": [*PSEUDO, *((f"x-{number}", "y" * 1000) for number in range(100))],
}


@pytest.mark.parametrize("name", BAD)
async def test_what_would_be_another_request_to_a_server_of_http1_is_refused(gateway, name: str):
    async with Backend() as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        async with raw_client(gateway.port) as client:
            client.ask(BAD[name])
            event = await client.until(events.ResponseReceived, events.StreamReset, events.ConnectionTerminated)
            assert not isinstance(event, events.ResponseReceived) or status_of(event) >= 400
        assert backend.heard == b""


async def test_of_two_hosts_the_one_counts_that_was_routed_by(gateway):
    async with Backend() as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        async with raw_client(gateway.port) as client:
            client.ask([*PSEUDO, ("host", "other.test")])
            assert status_of(await client.until(events.ResponseReceived)) == 200
        assert b"other.test" not in backend.heard
