"""The gateway in front of real servers, over real sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import aiohttp
import pytest
from aiohttp import web
from tests.unit.local.gateway.raw import exchange, named, upper

from isvc.local.gateway.endpoints.endpoint import Endpoint

TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "tracestate": "vendor=1"}


@pytest.fixture
def refusing() -> Iterator[list[int]]:
    """Ports that are taken, so that nobody else listens there, and refuse connections."""
    holders = [socket.socket() for _ in range(2)]
    for holder in holders:
        holder.bind(("127.0.0.1", 0))
    yield [holder.getsockname()[1] for holder in holders]
    for holder in holders:
        holder.close()


async def test_only_ready_endpoints_get_requests(gateway, sites):
    await gateway.service("s", (await sites(named("ready")), True), (await sites(named("other")), False))
    await gateway.route("h.test", ("s", 1))
    for _ in range(10):
        assert await (await gateway.session.get("/")).text() == "ready"


async def test_nothing_is_kept_of_what_is_gone_and_it_may_come_again(gateway, sites):
    kept = gateway.gateway.xds._resources
    before, port = set(kept), await sites(named("again"))
    for _ in range(3):
        await gateway.service("s", (port, True))
        await gateway.route("h.test", ("s", 1))
        assert await (await gateway.session.get("/")).text() == "again"
        await gateway.clear()
        assert set(kept) == before


async def test_what_is_missing_is_told(gateway, refusing):
    answer = await gateway.session.get("/", headers={"Host": "localhost"})
    assert "known hosts: none yet" in (await answer.json())["error"]
    await gateway.route("h.test", ("s", 1))
    answer = await gateway.session.get("/")
    assert (answer.status, (await answer.json())["error"]) == (500, "Service default/s does not exist")
    await gateway.service("s")
    assert (await (await gateway.session.get("/")).json())["error"] == "Service default/s has no endpoints"
    await gateway.service("s", (1, False))
    assert (await (await gateway.session.get("/")).json())["error"] == "Service default/s has 1 endpoint, none ready"
    await gateway.service("s", (refusing[0], True))
    answer = await gateway.session.get("/")
    assert answer.status == 503
    assert "accepts connections" in (await answer.json())["error"]


async def test_a_refused_connection_goes_to_the_next_endpoint(gateway, sites, refusing):
    await gateway.service("s", *((port, True) for port in refusing), (await sites(named("alive")), True))
    await gateway.route("h.test", ("s", 1))
    for _ in range(10):
        answer = await gateway.session.post("/", data=b"x" * 200_000)
        assert await answer.text() == "alive"


async def test_weights_share_the_requests(gateway, sites):
    await gateway.service("a", (await sites(named("a")), True))
    await gateway.service("b", (await sites(named("b")), True))
    await gateway.route("h.test", ("a", 90), ("b", 10))
    answers = [await (await gateway.session.get("/")).text() for _ in range(400)]
    assert 5 < answers.count("b") < 100
    await gateway.route("h.test", ("a", 0), ("b", 1))
    assert {await (await gateway.session.get("/")).text() for _ in range(20)} == {"b"}


async def test_headers_paths_and_rewrites_arrive_as_written(gateway, sites):
    async def echo(request):
        headers = {name.lower(): value for name, value in request.headers.items()}
        return web.json_response({"path": request.raw_path_of, "headers": headers})

    async def raw(request):
        request.raw_path_of = request._message.path
        return await echo(request)

    await gateway.service("s", (await sites(raw), True))
    await gateway.route(
        "h.test",
        ("s", 1),
        matches=[{"path": {"type": "PathPrefix", "value": "/serving"}}],
        filters=[
            {"type": "URLRewrite", "urlRewrite": {"path": {"replacePrefixMatch": "/"}}},
            {
                "type": "RequestHeaderModifier",
                "requestHeaderModifier": {
                    "set": [{"name": "KServe-Isvc-Name", "value": "iris"}],
                    "remove": ["X-Secret"],
                },
            },
            {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"add": [{"name": "X-More", "value": "1"}]}},
        ],
    )
    answer = await gateway.session.get("/serving/v1/models/a%2Fb:predict?x=%20y", headers={"X-Secret": "no", **TRACE})
    seen = await answer.json()
    assert {name: seen["headers"][name] for name in TRACE} == TRACE
    assert seen["path"] == "/v1/models/a%2Fb:predict?x=%20y"
    assert seen["headers"]["host"] == "h.test"
    assert seen["headers"]["kserve-isvc-name"] == "iris"
    assert seen["headers"]["x-forwarded-for"] == "127.0.0.1"
    assert "x-secret" not in seen["headers"]
    assert answer.headers["X-More"] == "1"


async def test_bodies_stream_both_ways(gateway, sites):
    await gateway.service("s", (await sites(upper), True))
    await gateway.route("h.test", ("s", 1))
    heard = asyncio.Event()

    async def parts():
        yield b"one"
        await heard.wait()  # the second part is only sent once the answer to the first has arrived
        yield b"two"

    async with asyncio.timeout(30):
        answer = await gateway.session.post("/", data=parts())
        assert await answer.content.readany() == b"ONE"
        heard.set()
        assert await answer.content.readany() == b"TWO"


async def test_a_limit_of_time_and_a_broken_answer_are_told(gateway, sites):
    async def never(request):
        await asyncio.sleep(60)
        return web.Response()

    await gateway.service("s", (await sites(never), True))
    await gateway.route("h.test", ("s", 1), timeouts={"request": "100ms"})
    answer = await gateway.session.get("/")
    assert answer.status == 504
    assert "0.1 s" in (await answer.json())["error"]

    async def hang_up(request):
        request.transport.close()
        return web.Response()

    await gateway.service("s", (await sites(hang_up), True))
    await gateway.route("h.test", ("s", 1))
    assert (await gateway.session.post("/", data=b"{}")).status == 502


async def test_drain_sends_nothing_more_and_waits_for_what_runs(gateway, sites):
    arrived, release = asyncio.Event(), asyncio.Event()

    async def slow(request):
        arrived.set()
        await release.wait()
        return web.Response(text="old")

    old, new = await sites(slow), await sites(named("new"))
    await gateway.service("s", (old, True))
    await gateway.route("h.test", ("s", 1))
    running = asyncio.create_task(gateway.session.get("/"))
    await arrived.wait()
    drained = asyncio.create_task(gateway.gateway.drain(Endpoint("127.0.0.1", old), 30))
    await asyncio.sleep(0)
    await gateway.service("s", (old, False), (new, True))
    for _ in range(5):
        assert await (await gateway.session.get("/")).text() == "new"
    assert not drained.done()
    release.set()
    assert await (await running).text() == "old"
    assert await drained


async def test_drain_waits_until_no_slice_offers_the_endpoint(gateway, sites):
    old = await sites(named("old"))
    await gateway.service("s", (old, True))
    await gateway.route("h.test", ("s", 1))
    drained = asyncio.create_task(gateway.gateway.drain(Endpoint("127.0.0.1", old), 30))
    assert await (await gateway.session.get("/")).text() == "old"
    assert not drained.done()
    await gateway.service("s")
    assert await drained


async def test_it_is_the_proxy_of_processes(gateway, sites):
    async def host(request):
        return web.Response(text=request.headers["Host"])

    inside, outside = await sites(named("inside")), await sites(host)
    await gateway.service("iris-predictor", (inside, True))
    async with aiohttp.ClientSession() as client:
        proxy = gateway.gateway.proxy_url
        for name in ("iris-predictor.default", "iris-predictor.default.svc.cluster.local"):
            async with client.get(f"http://{name}/v1/models/iris", proxy=proxy) as answer:
                assert await answer.text() == "inside"
        async with client.get(f"http://localhost:{outside}/x", proxy=proxy) as answer:
            assert await answer.text() == f"localhost:{outside}"


async def test_a_client_that_waits_for_leave_to_send_gets_it(gateway, sites):
    async def size(request):
        return web.Response(text=str(len(await request.content.read())))

    await gateway.service("s", (await sites(size), True))
    await gateway.route("h.test", ("s", 1))
    body = b"x" * 300_000
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = f"POST / HTTP/1.1\r\nHost: h.test\r\nContent-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    writer.write(head.encode())
    async with asyncio.timeout(30):
        assert await reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        writer.write(body)
        assert b"300000" in await reader.readuntil(b"300000")
    writer.close()


async def test_head_has_the_length_and_no_body(gateway, sites):
    await gateway.service("s", (await sites(named("twelve bytes")), True))
    await gateway.route("h.test", ("s", 1))
    answer = await gateway.session.head("/")
    assert (answer.status, answer.headers["Content-Length"], await answer.read()) == (200, "12", b"")


async def test_nothing_is_added_that_the_client_did_not_say(gateway, sites):
    async def heard(request):
        return web.json_response(sorted(name.lower() for name in request.headers))

    await gateway.service("s", (await sites(heard), True))
    await gateway.route("h.test", ("s", 1))
    answer = await exchange(gateway.port, b"POST / HTTP/1.1\r\nHost: h.test\r\nContent-Length: 2\r\n\r\n{}")
    expected = b'["content-length", "host", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"]'
    assert answer.endswith(expected)


async def test_long_headers_pass_both_ways(gateway, sites):
    async def echo(request):
        return web.Response(headers={"X-Token": request.headers["X-Token"]})

    await gateway.service("s", (await sites(web.Server(echo, max_field_size=65536)), True))
    await gateway.route("h.test", ("s", 1))
    session = aiohttp.ClientSession(max_field_size=65536)
    async with (
        session,
        session.get(f"http://127.0.0.1:{gateway.port}/", headers={"Host": "h.test", "X-Token": "t" * 20_000}) as answer,
    ):
        assert answer.headers["X-Token"] == "t" * 20_000


async def test_what_it_cannot_do_is_said(gateway, sites):
    await gateway.service("s", (await sites(named("served")), True))
    await gateway.route("h.test", ("s", 1))
    upgrade = "GET /%s HTTP/1.1\r\nHost: h.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n"
    assert b"served" in await exchange(gateway.port, (upgrade % ("", "h2c")).encode())  # others may be ignored
    assert b"needs a path" in await exchange(gateway.port, b"OPTIONS * HTTP/1.1\r\nHost: h.test\r\n\r\n")
    connect = b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n"
    assert b"no tunnels" in await exchange(gateway.port, connect)
    assert b"served" in await exchange(gateway.port, b"GET HTTP://h.test/ HTTP/1.1\r\nHost: h.test\r\n\r\n")


async def test_a_request_whose_client_is_gone_ends(gateway, sites):
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def slow(request):
        arrived.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    port = await sites(slow)
    await gateway.service("s", (port, True))
    await gateway.route("h.test", ("s", 1))
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
    async with asyncio.timeout(30):
        await arrived.wait()
        writer.close()
        await ended.wait()
        await gateway.service("s")
        assert await gateway.gateway.drain(Endpoint("127.0.0.1", port), 30)
