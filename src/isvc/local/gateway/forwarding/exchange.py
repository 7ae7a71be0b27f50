"""One request to one server, and its answer to the client: small bodies in one piece, others streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from isvc.local.gateway.forwarding.headers import response_headers
from isvc.local.gateway.forwarding.websockets import pass_on_websocket
from isvc.local.gateway.requests.answers import BEGUN
from isvc.local.gateway.requests.http2 import Http2Request
from isvc.local.gateway.routes.rules import Filters
from isvc.wire.http2.stream import Stream

Body = bytes | aiohttp.StreamReader | Stream | None

BUFFERED: Final = 64 * 1024  # bodies up to this size are passed on in one piece
LONGEST_LINE: Final = 64 * 1024  # of a request or an answer: tokens and cookies may be long
_NO_LIMIT: Final = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=10)
_NOT_ADDED: Final = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")  # a client that says none means it


class Unwanted(Exception):
    """An answer that the rule would rather have from another attempt."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request as its server gets it."""

    path_and_query: str
    headers: CIMultiDict[str]
    body: Body
    filters: tuple[Filters, ...] = ()
    proxy: str | None = None
    deadlines: tuple[asyncio.Timeout, ...] = ()
    http2: bool = False  # whether the server speaks it
    unwanted: frozenset[int] = frozenset()  # codes of answers that are not passed on


def new_session(connector: aiohttp.TCPConnector | None) -> aiohttp.ClientSession:
    """A client that passes on what it is given, and nothing of its own: no cookies, no logins out of ~/.netrc."""
    return aiohttp.ClientSession(
        connector=connector,
        auto_decompress=False,
        timeout=_NO_LIMIT,
        skip_auto_headers=_NOT_ADDED,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_LINE,
    )


async def read_body(request: web.BaseRequest, limit: int = BUFFERED) -> Body:
    """In one piece up to a size, else as a stream."""
    if not request.body_exists:
        return None
    if isinstance(request, Http2Request):
        is_short = request.stream.complete or (request.content_length is not None and request.content_length <= limit)
        return await request.read() if is_short else request.stream
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    if request.content_length is not None and request.content_length <= limit:
        return await request.read()
    return request.content


async def exchange(
    session: aiohttp.ClientSession, request: web.BaseRequest, server: str, out: Outgoing
) -> web.StreamResponse:
    """Raises aiohttp.ClientError when the server fails, ValueError for headers that are none, and Unwanted."""
    url = URL(server + out.path_and_query, encoded=True)
    async with session.request(
        request.method, url, headers=out.headers, data=out.body, allow_redirects=False, proxy=out.proxy
    ) as answer:
        if answer.status in out.unwanted:
            raise Unwanted
        changed = response_headers(answer.headers, out.filters)
        if answer.status == 101:
            return await pass_on_websocket(request, out.headers, answer, changed, out.deadlines)
        length = answer.content_length
        if request.method != "HEAD" and length is not None and length <= BUFFERED:
            changed.popall("Content-Length", None)
            body = await answer.read()
            return web.Response(status=answer.status, reason=answer.reason, headers=changed, body=body)
        return await _stream(request, answer, changed)


async def _stream(
    request: web.BaseRequest, answer: aiohttp.ClientResponse, headers: Mapping[str, str]
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    request[BEGUN] = response
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response
