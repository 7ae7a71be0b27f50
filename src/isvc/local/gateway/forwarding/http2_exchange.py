"""One request to a server that speaks HTTP/2, gRPC's above all: bodies streamed both ways at once, then trailers."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web
from multidict import CIMultiDict

from isvc.local.gateway.endpoints.backends import Endpoint
from isvc.local.gateway.forwarding.exchange import Body, Outgoing, Unwanted
from isvc.local.gateway.forwarding.headers import response_headers
from isvc.local.gateway.requests.answers import BEGUN
from isvc.local.gateway.requests.http2 import Http2Request, encoded
from isvc.wire.http2.client import Pool
from isvc.wire.http2.stream import Broken, Headers, Stream


async def exchange_http2(pool: Pool, request: web.BaseRequest, endpoint: Endpoint, out: Outgoing) -> web.StreamResponse:
    """Raises OSError where nobody accepts connections, Broken when the server fails, and Unwanted."""
    head = _request_head(request, out)
    upstream = await pool.open(endpoint.host, endpoint.port, head, end=out.body is None)
    sending: asyncio.Task[None] | None = None
    try:
        if isinstance(out.body, bytes):
            await upstream.send(out.body, end=True)
        elif out.body is not None:
            sending = asyncio.create_task(_send(upstream, out.body))
        headers = await upstream.head()
        status = int(headers[0][1])
        if status in out.unwanted:
            raise Unwanted
        if isinstance(request, Http2Request):
            return await _pass_back(request, upstream, out, status)
        return await _pass_back_as_http1(request, upstream, out, status)
    finally:
        if sending is not None:
            sending.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sending
        upstream.close()


def _request_head(request: web.BaseRequest, out: Outgoing) -> Headers:
    head = [
        (b":method", request.method.encode()),
        (b":scheme", b"http"),
        (b":path", out.path_and_query.encode("latin-1")),
        (b":authority", out.headers.get("Host", "").encode("latin-1")),
        *(pair for pair in encoded(out.headers) if pair[0] != b"host"),
    ]
    if request.headers.get("TE", "").lower() == "trailers":  # of the headers between neighbours the one that may stay
        head.append((b"te", b"trailers"))
    return head


async def _send(upstream: Stream, body: Body) -> None:
    """A server may answer, and go, before it has read everything."""
    assert not isinstance(body, bytes | None)
    try:
        async for piece in body:
            await upstream.send(piece)
        await upstream.send(b"", end=True)
    except Broken:
        return
    except ConnectionError:
        upstream.reset()  # the client left half-way


async def _pass_back(request: Http2Request, upstream: Stream, out: Outgoing, status: int) -> web.StreamResponse:
    client = request.stream
    answer = web.StreamResponse(status=status)
    head = upstream.headers
    if any(filters.response for filters in out.filters):
        head = [head[0], *encoded(response_headers(_decoded(head), out.filters))]
    if upstream.is_empty:
        client.send_headers(head, end=True)
        return answer
    client.send_headers(head)
    request[BEGUN] = answer
    while piece := await upstream.read():
        request.writer.output_size += len(piece)
        await client.send(piece)
    if upstream.trailers:
        client.send_headers(upstream.trailers, end=True)
    else:
        await client.send(b"", end=True)
    return answer


async def _pass_back_as_http1(
    request: web.BaseRequest, upstream: Stream, out: Outgoing, status: int
) -> web.StreamResponse:
    """Leaves out trailers: few clients of HTTP/1.1 know any."""
    headers = response_headers(_decoded(upstream.headers), out.filters)
    response = web.StreamResponse(status=status, headers=headers)
    request[BEGUN] = response
    await response.prepare(request)
    async for piece in upstream:
        await response.write(piece)
    await response.write_eof()
    return response


def _decoded(headers: Headers) -> CIMultiDict[str]:
    return CIMultiDict(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in headers if not name.startswith(b":")
    )
