"""A hostile model server, a hostile site and a hostile reader: the dashboard stays up and says what is wrong."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests import definitions
from tests.cluster.lifecycles.stage import our_crds, service
from tests.waiting import until
from tests.web_servers import on_any_path, serving
from yarl import URL

from isvc.api.resources import INFERENCE_SERVICES
from isvc.cli.dashboard import Wanted, start
from isvc.dashboard.pages import live, try_it
from isvc.dashboard.pages.live import Event, stream
from isvc.toolkit.client import PatchKind

SCRIPT = "<script>alert(1)</script>"
FLOOD = b"0" * 65536


async def _stream(request: web.Request, kind: str, pieces: Any) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": kind})
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece)
    return response


def _endless(piece: bytes) -> Any:
    while True:
        yield piece


def _said(text: Any) -> bytes:
    return f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n".encode()


async def hostile(request: web.Request) -> web.StreamResponse:
    """A model server that answers as the request asks it to."""
    asked = (await request.json())["as"]
    bodies: dict[str, web.Response] = {
        "script": web.Response(text=SCRIPT, content_type="text/html"),
        "binary": web.Response(body=bytes(range(256)) * 16),
        "depths": web.Response(text="[" * 900 + "]" * 900, content_type="application/json"),
        "refusal": web.Response(text=SCRIPT * 100, status=500),
        "elsewhere": web.Response(status=307, headers={"Location": "http://169.254.169.254/secrets"}),
    }
    endless = {
        "flood": ("application/json", FLOOD),
        "chatter": ("text/event-stream", _said("x" * 1000)),
        "long line": ("text/event-stream", FLOOD),
    }
    if asked in endless:
        kind, piece = endless[asked]
        return await _stream(request, kind, _endless(piece))
    if asked == "shapes":
        shapes = [b'{"choices": ["x"]}', b"[]", b'{"choices": {"0": 1}}', b'"choices"', b"\xff"]
        strange = [b"data: " + shape + b"\n\n" for shape in shapes]
        return await _stream(request, "text/event-stream", [*strange, _said({"a": SCRIPT}), b"data: [DONE]\n\n"])
    return bodies[asked]


def _forgetful() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())


class Reader:
    """Somebody with the token, who does not follow redirects."""

    def __init__(self, session: aiohttp.ClientSession, link: str, namespace: str) -> None:
        self.session = session
        self.base, _, self.token = link.partition("/?token=")
        self.path = f"/services/isvc/{namespace}/life"
        self.bearer = {"Authorization": f"Bearer {self.token}"}

    async def ask(self, asked: str, **more: Any) -> str:
        """The page that the form leads to, as htmx gets it."""
        form = {"request": json.dumps({"instances": [], "as": asked, **more})}
        headers = {**self.bearer, "HX-Request": "true"}
        async with self.session.post(self.base + self.path + "/try", data=form, headers=headers) as answer:
            assert answer.status == 200
            return await answer.text()

    async def chat(self, asked: str) -> str:
        """The events of an answer that streams, to their end."""
        fragment = await self.ask(asked, stream=True)
        path = re.search(r'sse-connect="([^"]+)"', fragment)
        assert path
        async with self.session.get(self.base + path[1], headers=self.bearer) as answer:
            return await answer.text()

    async def status(self, method: str, path: str, **headers: str) -> int:
        target = URL(self.base + path, encoded=True)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, target, headers=named, allow_redirects=False) as answer:
            return answer.status


@pytest.fixture
async def reader(client, namespace) -> AsyncIterator[Reader]:
    """Of a dashboard with a service whose address is that of the hostile server."""
    await definitions.install(client, *our_crds())
    await client.create(INFERENCE_SERVICES, service(namespace))
    async with serving(on_any_path(hostile)) as port, _forgetful() as session:
        status = {"status": {"url": f"http://127.0.0.1:{port}"}}
        await client.patch(INFERENCE_SERVICES, "life", status, namespace, kind=PatchKind.MERGE, subresource="status")
        dashboard = await start(client, Wanted(port=0, allow_edit=True))
        try:
            found = Reader(session, dashboard.link, namespace)
            await until(lambda: has_address(found), "the dashboard has seen the address")
            yield found
        finally:
            await dashboard.close()


async def has_address(reader: Reader) -> bool:
    async with reader.session.get(reader.base + reader.path, headers=reader.bearer) as answer:
        return answer.status == 200 and "http://127.0.0.1" in await answer.text()


async def test_answers_of_a_hostile_model_server(reader, monkeypatch):
    monkeypatch.setattr(try_it, "MOST_STREAMED", 50_000)
    assert "more than 4 MiB" in await reader.ask("flood")
    assert "it leads to http://169.254.169.254/secrets" in await reader.ask("elsewhere")
    assert "Answer" in await reader.ask("binary")
    assert "[[[[" in await reader.ask("depths")
    for asked in ("script", "refusal"):
        page = await reader.ask(asked)
        assert SCRIPT not in page
        assert "&lt;script&gt;" in page


async def test_streams_of_a_hostile_model_server(reader, monkeypatch):
    monkeypatch.setattr(try_it, "MOST_STREAMED", 50_000)
    chatter = await reader.chat("chatter")
    assert "the rest is left out" in chatter
    assert len(chatter) < 100_000
    assert "a line that is too long" in await reader.chat("long line")
    shapes = await reader.chat("shapes")
    assert SCRIPT not in shapes
    assert shapes.count("event: piece") == 1
    assert "event: done" in shapes


async def test_other_sites_and_strangers_change_nothing(reader, client, namespace):
    edit = reader.path + "/edit"
    async with reader.session.get(f"{reader.base}/?token={reader.token}", allow_redirects=False) as answer:
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
    posts = [
        {"Cookie": cookie, "Origin": "http://evil.example"},
        {"Cookie": cookie, "Sec_Fetch_Site": "cross-site"},
        {"Cookie": cookie, "Origin": "null"},
        {"Cookie": cookie},  # without the value that only our forms have
        {"Cookie": cookie, "Host": "evil.example"},
    ]
    assert [await reader.status("POST", edit, **headers) for headers in posts] == [403] * len(posts)
    assert await reader.status("POST", edit) == 401
    assert await reader.status("GET", "/", Cookie=cookie, Host="evil.example") == 403
    assert (await client.get(INFERENCE_SERVICES, "life", namespace))["metadata"].get("annotations") is None


async def test_paths_lead_nowhere_else(reader):
    paths = ("/static/../../cli/up.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/objects/x/../../..")
    assert [await reader.status("GET", path, **reader.bearer) for path in paths] == [404] * 4
    target = URL(f"{reader.base}/%5Cevil.example/%0D%0AX?token={reader.token}", encoded=True)
    async with reader.session.get(target, allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"]) == (303, "/%5Cevil.example/%0D%0AX")


async def test_a_reader_who_does_not_read_is_cut_off(monkeypatch):
    monkeypatch.setattr(live, "PATIENCE", 0.2)
    ended = asyncio.Event()

    async def flood() -> Any:
        try:
            while True:
                yield Event("page", "x" * 65536)
        finally:
            ended.set()

    async def events(request: web.Request) -> web.StreamResponse:
        return await stream(request, flood())

    async with serving(on_any_path(events)) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await asyncio.wait_for(ended.wait(), 60)
        writer.close()
