"""`kubectl logs`, with a node of our own that answers as a kubelet does."""

from __future__ import annotations

import asyncio
import ssl

import pytest
from aiohttp import web
from tests.unit.apiserver.conftest import NAMESPACES

PODS = f"{NAMESPACES}/default/pods"


@pytest.fixture
async def node(http):
    """A node that tells what it was asked, and streams one line each time the event is set."""
    asked: list[tuple[str, dict[str, str], str]] = []
    more = asyncio.Event()

    async def container_log(request: web.Request) -> web.StreamResponse:
        asked.append((request.path, dict(request.query), request.headers["Authorization"]))
        if request.match_info["container"] == "broken":
            return web.Response(status=400, text='container "broken" in pod "p" is waiting to start\n')
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first\n")
        if "follow" in request.query:
            await more.wait()
            await response.write(b"second\n")
        return response

    app = web.Application()
    app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", container_log)
    pki = http.server.identity.folder
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pki / "tls.crt", pki / "tls.key")
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    await http.create("/api/v1/nodes", metadata={"name": "n1"})
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": runner.addresses[0][1]}},
    }
    await http.patch("/api/v1/nodes/n1/status", {"status": status})
    yield asked, more
    more.set()
    await runner.cleanup()


async def pod(http, name: str, *containers: str, node: str = "n1") -> None:
    spec = {"nodeName": node, "containers": [{"name": each, "image": "i"} for each in containers]}
    await http.create(PODS, metadata={"name": name}, spec={k: v for k, v in spec.items() if v})


async def test_logs_come_from_the_node(http, node):
    asked, _ = node
    await pod(http, "p", "c")
    answer = await http.ask("GET", f"{PODS}/p/log?tailLines=5&timestamps=true&unknown=x")
    assert (answer.code, answer.text) == (200, "first\n")
    assert answer.headers["Content-Type"].startswith("text/plain")
    path, query, authorization = asked[0]
    assert path == "/containerLogs/default/p/c"
    assert query == {"tailLines": "5", "timestamps": "true"}
    assert authorization == f"Bearer {http.server.identity.kubelet_token}"


async def test_followed_logs_arrive_line_by_line(http, node):
    _, more = node
    await pod(http, "p", "c")
    async with http.session.get(f"{http.server.url}{PODS}/p/log?follow=true") as answer:
        assert await answer.content.readline() == b"first\n"
        more.set()
        assert await answer.content.readline() == b"second\n"
        assert await answer.content.readline() == b""


async def test_a_container_has_to_be_chosen_and_exist(http, node):
    await pod(http, "p", "a", "b")
    which = await http.ask("GET", f"{PODS}/p/log")
    assert (which.code, which.message) == (
        400,
        "a container name must be specified for pod p, choose one of: [a b]",
    )
    assert (await http.ask("GET", f"{PODS}/p/log?container=b")).text == "first\n"
    assert (await http.ask("GET", f"{PODS}/p/log?container=x")).code == 400
    assert (await http.ask("GET", f"{PODS}/none/log")).code == 404


async def test_what_the_node_refuses_is_passed_on(http, node):
    await pod(http, "p", "broken")
    answer = await http.ask("GET", f"{PODS}/p/log")
    assert answer.code == 400
    assert "waiting to start" in answer.message


async def test_a_pod_without_a_node_has_nothing_to_say(http):
    await pod(http, "p", "c", node="")
    assert (await http.ask("GET", f"{PODS}/p/log")).text == ""
    await pod(http, "q", "c", node="unknown")
    assert (await http.ask("GET", f"{PODS}/q/log")).code == 404


@pytest.mark.parametrize(
    ("query", "code", "words"),
    [
        ("tailLines=abc", 400, 'parsing "abc"'),
        ("tailLines=-1", 422, "tailLines: Invalid value: -1"),
        ("sinceSeconds=0", 422, "sinceSeconds"),
        ("limitBytes=0", 422, "limitBytes"),
        ("sinceTime=yesterday", 400, "yesterday"),
        ("sinceTime=2026-01-01T00:00:00Z&sinceSeconds=5", 422, "at most one"),
    ],
)
async def test_options_that_make_no_sense(http, node, query, code, words):
    asked, _ = node
    await pod(http, "p", "c")
    answer = await http.ask("GET", f"{PODS}/p/log?{query}")
    assert (answer.code, words in answer.message) == (code, True), answer.text
    assert asked == []


async def test_whoever_stops_following_frees_the_node(http, node):
    await pod(http, "p", "c")
    response = await http.session.get(f"{http.server.url}{PODS}/p/log?follow=true")
    assert await response.content.readline() == b"first\n"
    (connection,) = [each for each in http.server._http.connections if each.streaming]
    response.close()
    async with asyncio.timeout(30):
        await connection.closed
        while connection.streaming:
            await asyncio.sleep(0.01)
