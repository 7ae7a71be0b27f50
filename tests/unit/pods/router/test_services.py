"""What the router adds to KServe's: answers as they come, retries, limits of time, traces and metrics."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.web_servers import on_any_path, serving
from yarl import URL

from isvc.pods.router import services
from isvc.pods.router.app import Router
from isvc.pods.router.graph import decode

Service = Callable[[web.Request], Awaitable[web.StreamResponse]]
TRACE = {
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "tracestate": "vendor=1",
}


@asynccontextmanager
async def routed(
    serve: Service, *steps: dict[str, Any], kind: str = "Sequence", **timeouts: float
) -> AsyncIterator[str]:
    """A router in front of a service, which every step without a URL leads to; yields its address."""
    async with serving(on_any_path(serve)) as service:
        given = [{"serviceUrl": f"http://127.0.0.1:{service}/step", **step} for step in steps]
        nodes = {"root": {"routerType": kind, "steps": given}}
        router = Router(decode(json.dumps({"nodes": nodes, "routerTimeouts": timeouts})))
        async with serving(router.application()) as port:
            yield f"http://127.0.0.1:{port}"


@asynccontextmanager
async def post(url: str | URL, **given: Any) -> AsyncIterator[aiohttp.ClientResponse]:
    async with aiohttp.ClientSession() as session, session.post(url, **given) as response:
        yield response


class Events:
    """A service that sends events, each when a test says so."""

    def __init__(self) -> None:
        self.ready: asyncio.Queue[bytes] = asyncio.Queue()
        self.left = asyncio.Event()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            while data := await self.ready.get():
                await response.write(b"data: " + data + b"\n\n")
        finally:
            self.left.set()
        return response


@pytest.mark.parametrize("kind", ["Sequence", "Splitter"])
async def test_events_of_the_last_step_pass_when_they_come(kind: str) -> None:
    events = Events()
    async with routed(events.serve, {"weight": 100}, kind=kind) as url, post(url) as response:
        for number in range(3):
            events.ready.put_nowait(b"%d" % number)
            assert await response.content.readuntil(b"\n\n") == b"data: %d\n\n" % number
        events.ready.put_nowait(b"")
        assert response.headers["Content-Type"] == "text/event-stream"
        assert await response.read() == b""


async def test_a_client_that_leaves_a_stream_ends_it_for_the_service() -> None:
    events = Events()
    async with routed(events.serve, {}) as url:
        async with post(url) as response:
            events.ready.put_nowait(b"first")
            await response.content.readany()
        await asyncio.wait_for(events.left.wait(), 30)


async def test_a_stream_that_breaks_off_is_not_taken_for_a_whole_one() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with routed(serve, {}) as url, post(url) as response:
        with pytest.raises(aiohttp.ClientError):
            await response.read()


async def test_a_stream_that_stands_still_is_ended() -> None:
    events = Events()
    events.ready.put_nowait(b"only")
    async with routed(events.serve, {}, serverWrite=0.2) as url, post(url) as response:
        with pytest.raises(aiohttp.ClientError):
            await response.read()
        await asyncio.wait_for(events.left.wait(), 30)


async def test_what_another_step_needs_is_read_whole() -> None:
    """The first step's events are the second's request."""

    async def serve(request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if body != b"begin":
            return web.Response(body=body)
        return web.Response(body=b"data: 1\n\ndata: 2\n\n", content_type="text/event-stream")

    async with routed(serve, {}, {"data": "$response"}) as url, post(url, data=b"begin") as response:
        assert await response.read() == b"data: 1\n\ndata: 2\n\n"
        assert response.content_type == "text/plain"


async def test_large_answers_are_passed_on_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "LARGE", 1000)

    async def serve(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"\0" * 100_000, content_type="application/x-protobuf")

    async with routed(serve, {}) as url, post(url) as response:
        assert await response.read() == b"\0" * 100_000
        assert response.content_type == "application/x-protobuf"


class Flaky:
    """A service that fails a few times before it answers."""

    def __init__(self, failures: int, status: int) -> None:
        self.failures, self.status, self.asked = failures, status, 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        if self.asked > self.failures:
            return web.json_response({"tries": self.asked})
        if self.status == 0:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=self.status or 500)


@pytest.mark.parametrize(
    ("retries", "failing", "status", "asked"),
    [(2, 503, 200, 3), (2, 0, 200, 3), (1, 503, 503, 2), (0, 503, 503, 1), (1, 0, 500, 2), (5, 500, 500, 1)],
)
async def test_a_step_is_tried_again_as_often_as_it_says(retries: int, failing: int, status: int, asked: int) -> None:
    service = Flaky(2, failing)
    async with routed(service.serve, {"retries": retries, "name": "model"}) as url:
        async with post(url) as response:
            assert (response.status, service.asked) == (status, asked)
        async with aiohttp.ClientSession() as session, session.get(f"{url}/metrics") as response:
            text = await response.text()
    assert f'isvc_router_step_retries_total{{node="root",step="model"}} {asked - 1}.0' in text
    code = status if failing else "error" if status == 500 else status
    assert f'isvc_router_step_duration_seconds_count{{code="{code}",node="root",step="model"}} 1.0' in text
    assert f'isvc_router_node_duration_seconds_count{{code="{code}",node="root"}} 1.0' in text


async def test_each_step_has_its_own_limit_of_time() -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        if len(asked) == 1:
            await asyncio.Event().wait()
        return web.json_response({})

    async with routed(serve, {"timeoutSeconds": 1, "retries": 1}, serviceClient=300) as url, post(url) as response:
        assert response.status == 200  # a busy machine answers the second one in time, too
    assert len(asked) == 2
    asked.clear()
    async with routed(serve, {"timeoutSeconds": 0.1}, serviceClient=300) as url, post(url) as response:
        assert response.status == 500
        assert "no answer within 0.1 s" in (await response.json())["cause"]


async def test_traces_pass_and_other_headers_only_as_configured() -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        return web.json_response({name.lower(): value for name, value in request.headers.items()})

    async with routed(serve, {}) as url, post(url, headers={**TRACE, "X-Mine": "1"}) as response:
        seen = await response.json()
    assert {name: seen.get(name) for name in TRACE} == TRACE
    assert "x-mine" not in seen


async def test_nothing_of_one_client_goes_to_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cookie that a service sets, and no login of whoever runs the router."""
    seen: list[tuple[str | None, str | None]] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        seen.append((request.headers.get("Cookie"), request.headers.get("Authorization")))
        response = web.json_response({})
        response.set_cookie("session", "of-the-first")
        return response

    (tmp_path / "netrc").write_text("machine localhost login me password Tr0ub4dor\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(on_any_path(serve)) as service:
        named = {"serviceUrl": f"http://localhost:{service}/"}
        async with routed(serve, named) as url:
            for _ in range(2):
                async with post(url) as response:
                    assert response.status == 200
    assert seen == [(None, None)] * 2


async def test_the_proxy_of_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async def proxy(request: web.Request) -> web.StreamResponse:
        return web.json_response({"asked": str(request.url), "by": request.headers.get("Proxy-Authorization")})

    async with serving(on_any_path(proxy)) as port:
        monkeypatch.setenv("http_proxy", f"http://me:pass@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        async with routed(proxy, {"serviceUrl": "http://iris.ns.svc/v1"}) as url, post(url) as response:
            assert await response.json() == {"asked": "http://iris.ns.svc/v1", "by": "Basic bWU6cGFzcw=="}


async def test_a_path_writes_nothing_over_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def serve(request: web.Request) -> web.StreamResponse:
        raise AssertionError

    async with (
        routed(serve, {"condition": "no"}, kind="Switch") as url,
        post(URL(f"{url}/a%0D%1B[2KERROR%20forged", encoded=True), data=b"{}") as response,
    ):
        assert response.status == 404
    assert "/a%0D%1B[2KERROR%20forged" in caplog.text


async def test_a_step_can_take_the_path_that_was_asked_for() -> None:
    """As LLMs need it, which answer below several paths."""

    async def serve(request: web.Request) -> web.StreamResponse:
        return web.json_response({"path": request.path_qs})

    async with (
        routed(serve, {"appendRequestPath": True}) as url,
        post(f"{url}/v1/chat/completions?a=1") as response,
    ):
        assert await response.json() == {"path": "/step/v1/chat/completions?a=1"}
