"""What HTTPRoutes can ask for, over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from tests.unit.local.gateway.raw import named

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def failing(times: int, status: int = 503) -> tuple[Handler, list[bytes]]:
    """A server that answers so often with a failure, then well; and the bodies that it got."""
    bodies: list[bytes] = []

    async def handler(request: web.BaseRequest) -> web.Response:
        bodies.append(await request.read())
        return web.Response(status=status if len(bodies) <= times else 200, text=str(len(bodies)))

    return handler, bodies


@pytest.mark.parametrize(
    ("redirect", "asked", "location"),
    [
        ({"scheme": "https"}, "/a?b=c", (302, "https://h.test/a?b=c")),
        ({"hostname": "other.test", "statusCode": 301}, "/a", (301, "http://other.test/a")),
        ({"port": 81}, "/a", (302, "http://h.test:81/a")),
        ({"scheme": "http", "port": 80}, "/a", (302, "http://h.test/a")),
        ({"path": {"type": "ReplaceFullPath", "replaceFullPath": "/new"}}, "/old/x?q", (302, "http://h.test/new?q")),
        (
            {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"}},
            "/old/x",
            (302, "http://h.test/new/x"),
        ),
    ],
)
async def test_redirects(gateway, redirect, asked, location):
    prefix = "/old" if asked.startswith("/old") else "/"
    filters = [{"type": "RequestRedirect", "requestRedirect": redirect}]
    await gateway.route("h.test", matches=[{"path": {"type": "PathPrefix", "value": prefix}}], filters=filters)
    answer = await gateway.session.get(asked, allow_redirects=False)
    assert (answer.status, answer.headers["Location"]) == location


async def test_a_retry_sends_the_whole_request_again(gateway, sites):
    handler, bodies = failing(2)
    await gateway.service("s", (await sites(handler), True))
    await gateway.route("h.test", ("s", 1), retry={"attempts": 2, "codes": [503], "backoff": "1ms"})
    answer = await gateway.session.post("/", data=b"x" * 200_000)
    assert (answer.status, await answer.text()) == (200, "3")
    assert bodies == [b"x" * 200_000] * 3


@pytest.mark.parametrize(
    ("retry", "status", "asked"),
    [
        ({"attempts": 1, "codes": [503]}, 503, 2),  # what the last one says is passed on
        ({"attempts": 5, "codes": [500]}, 503, 1),
        ({"attempts": 0}, 503, 1),
        ({}, 503, 2),
        (None, 503, 1),
    ],
)
async def test_retries_end(gateway, sites, retry, status, asked):
    handler, bodies = failing(99)
    await gateway.service("s", (await sites(handler), True))
    await gateway.route("h.test", ("s", 1), **({"retry": {"backoff": "1ms", **retry}} if retry is not None else {}))
    assert (await gateway.session.post("/", data=b"{}")).status == status
    assert len(bodies) == asked


async def test_a_broken_connection_and_a_slow_answer_are_tried_again(gateway, sites):
    calls = 0

    async def unsteady(request: web.BaseRequest) -> web.Response:
        nonlocal calls
        calls += 1
        if calls == 1:
            assert request.transport is not None
            request.transport.close()
        if calls == 2:
            await asyncio.sleep(60)
        return web.Response(text=str(calls))

    await gateway.service("s", (await sites(unsteady), True))
    retry = {"attempts": 2, "backoff": "1ms"}
    await gateway.route("h.test", ("s", 1), retry=retry, timeouts={"backendRequest": "4s"})
    assert await (await gateway.session.post("/", data=b"{}")).text() == "3"


async def test_the_limit_of_one_attempt_is_told(gateway, sites):
    async def never(request: web.BaseRequest) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    await gateway.service("s", (await sites(never), True))
    await gateway.route("h.test", ("s", 1), timeouts={"request": "60s", "backendRequest": "100ms"})
    answer = await gateway.session.get("/")
    assert answer.status == 504
    assert "0.1 s, the limit of HTTPRoute default/r for an attempt" in (await answer.json())["error"]


async def test_an_answer_that_has_begun_is_never_asked_for_again(gateway, sites):
    calls = 0

    async def breaks_off(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal calls
        calls += 1
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"begun")
        assert request.transport is not None
        request.transport.abort()
        return response

    await gateway.service("s", (await sites(breaks_off), True))
    await gateway.route("h.test", ("s", 1), retry={"attempts": 3, "backoff": "1ms"})
    with pytest.raises(Exception, match="payload"):
        await (await gateway.session.get("/")).read()
    assert calls == 1


async def test_a_mirror_gets_a_copy_and_its_answer_goes_nowhere(gateway, sites):
    seen: asyncio.Queue[tuple[str, str, bytes]] = asyncio.Queue()

    async def mirror(request: web.BaseRequest) -> web.Response:
        seen.put_nowait((request.method, request.headers["Host"], await request.read()))
        return web.Response(status=500, text="mirror")

    await gateway.service("s", (await sites(named("served")), True))
    await gateway.service("m", (await sites(mirror), True))
    copies: dict = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "m", "port": 80}}}
    await gateway.route("h.test", ("s", 1), filters=[copies])
    assert await (await gateway.session.post("/x", data=b"body")).text() == "served"
    async with asyncio.timeout(60):
        assert await seen.get() == ("POST", "h.test", b"body")
    copies["requestMirror"]["percent"] = 0
    await gateway.route("h.test", ("s", 1), filters=[copies])
    for _ in range(5):
        assert await (await gateway.session.get("/")).text() == "served"
    assert seen.empty()


@pytest.mark.parametrize("endpoints", [[], [1]])
async def test_a_mirror_that_does_not_answer_changes_nothing(gateway, sites, endpoints):
    await gateway.service("s", (await sites(named("served")), True))
    await gateway.service("m", *((port, True) for port in endpoints))
    copies = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "m", "port": 80}}}
    await gateway.route("h.test", ("s", 1), filters=[copies])
    for _ in range(5):
        assert await (await gateway.session.get("/")).text() == "served"


async def test_what_a_route_asks_for_in_vain_is_told(gateway, sites):
    await gateway.service("s", (await sites(named("served")), True))
    await gateway.route("h.test", ("s", 1), filters=[{"type": "ExtensionRef", "extensionRef": {}}])
    answer = await gateway.session.get("/")
    assert answer.status == 500
    assert "HTTPRoute default/r asks for the filter ExtensionRef" in (await answer.json())["error"]
