"""What goes through the agent: handlers that pass a request on to the next, the model server at their end."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web
from yarl import URL

from isvc.wire.http1.end_to_end import end_to_end

log = logging.getLogger("isvc.pods.agent")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_NOT_ADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_PIECE = 1 << 16
# Where a handler finds a copy of the answer that was streamed past it, if it put a bytearray there.
COPY = "isvc.pods.agent.copy"


class ModelServer:
    """The other container of the pod."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._address = f"http://127.0.0.1:{port}"

    async def forward(self, request: web.Request) -> web.StreamResponse:
        headers = end_to_end(request.headers)
        headers.add("X-Forwarded-For", request.remote or "")
        url = URL(self._address + request.rel_url.raw_path_qs, encoded=True)
        copy: bytearray | None = request.get(COPY)
        response: web.StreamResponse | None = None
        try:
            body = await request.read()
            async with self._session.request(
                request.method, url, headers=headers, data=body, allow_redirects=False
            ) as answer:
                response = web.StreamResponse(status=answer.status, reason=answer.reason)
                response.headers.extend(end_to_end(answer.headers))
                await response.prepare(request)
                async for piece in answer.content.iter_chunked(_PIECE):
                    if copy is not None:
                        copy += piece
                    await response.write(piece)
                await response.write_eof()
                return response
        except aiohttp.ClientError as error:
            log.error("%s %s: %s", request.method, request.path, error)
            if response is not None and response.prepared:
                raise ConnectionResetError("the model server ended its answer early") from None
            return web.Response(text=f"the model server does not answer: {error}\n", status=502)

    async def post(self, path: str, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._address + path, data=body, headers=headers) as answer:
            return answer.status, await answer.read()


@asynccontextmanager
async def model_server(port: int) -> AsyncIterator[ModelServer]:
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        auto_decompress=False,
        skip_auto_headers=_NOT_ADDED,
        cookie_jar=aiohttp.DummyCookieJar(),
    )
    async with session:
        yield ModelServer(session, port)
