"""An API server in this process, and a client that knows nothing but HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from isvc.apiserver.server import Server

MERGE = "application/merge-patch+json"
NAMESPACES = "/api/v1/namespaces"
CONFIG_MAPS = f"{NAMESPACES}/default/configmaps"


class Answer:
    def __init__(self, code: int, text: str, headers: Any) -> None:
        self.code = code
        self.text = text
        self.headers = headers

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        return self.body["message"]


class Http:
    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str
    ) -> Answer:
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent["Content-Type"] = kind
        async with self.session.request(method, self.server.url + path, data=data, headers=sent) as answer:
            return Answer(answer.status, await answer.text(), answer.headers)

    async def create(self, path: str, **body: Any) -> Any:
        answer = await self.ask("POST", path, body)
        assert answer.code == 201, answer.text
        return answer.body

    async def patch(self, path: str, body: Any, kind: str = MERGE) -> Answer:
        return await self.ask("PATCH", path, body, kind)

    async def watch(self, path: str, **query: str) -> Watch:
        response = await self.session.get(self.server.url + path, params={"watch": "true", **query})
        assert response.status == 200, await response.text()
        return Watch(response)


class Watch:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Any:
        line = await self.response.content.readline()
        return json.loads(line) if line else None

    async def take(self, count: int) -> list[tuple[str, str]]:
        """The type and name of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    def close(self) -> None:
        self.response.close()


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Any]:
    """Starts servers, all on the same folder."""

    async def begin(**options: Any) -> Server:
        server = Server(tmp_path, **options)
        await server.start()
        return server

    return begin


@pytest.fixture
def connect() -> Callable[[Server], aiohttp.ClientSession]:
    def session(server: Server) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=False),
            headers={"Authorization": f"Bearer {server.identity.admin_token}"},
            read_bufsize=1 << 22,
        )

    return session


@pytest.fixture
async def http(start: Any, connect: Any, request: pytest.FixtureRequest) -> AsyncIterator[Http]:
    """A client of a fresh server that keeps objects in memory; parametrize indirectly with more options for it."""
    server = await start(ephemeral=True, **getattr(request, "param", {}))
    async with connect(server) as session:
        yield Http(server, session)
    await server.stop()
