"""WebSockets on their way through the gateway: a handshake like any request, then bytes in both directions.

Frames are not looked into. A connection leaves HTTP only once the server has agreed with 101 to the very protocol that
the client asked for; any other answer is passed on, and the connection stays one of HTTP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, Final

import aiohttp
from aiohttp import web
from aiohttp.http import HttpVersion11, StreamWriter
from multidict import CIMultiDict

from isvc.wire.http1.tunnel import Tunnel

HANDSHAKE: Final = {"Connection": "Upgrade", "Upgrade": "websocket"}


def asks_for_websocket(request: web.BaseRequest) -> bool:
    headers = request.headers
    if headers.get("Upgrade", "").lower() != "websocket" or request.method != "GET":
        return False
    named = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    return "upgrade" in named and request.version == HttpVersion11 and not request.body_exists


async def pass_on_websocket(
    request: web.BaseRequest,
    asked: Mapping[str, str],
    answer: aiohttp.ClientResponse,
    headers: CIMultiDict[str],
    deadlines: Iterable[asyncio.Timeout],
) -> web.StreamResponse:
    """Agrees with the client as the server did, and returns when either of them has ended the connection.

    `deadlines` are those of the answer, which has come: a connection lasts as long as it lasts.
    """
    agreed = answer.headers.get("Upgrade", "").lower() == "websocket" == asked.get("Upgrade")
    connection = answer.connection
    if not agreed or connection is None or connection.protocol is None or not connection.protocol.upgraded:
        raise aiohttp.ClientPayloadError("it changed to a protocol that was not asked for")
    for deadline in deadlines:
        deadline.reschedule(None)
    headers.update(HANDSHAKE)
    response = web.StreamResponse(status=101, headers=headers)
    response.force_close()
    await response.prepare(request)
    ends = [_tunnel(request.protocol), _tunnel(connection.protocol)]
    try:
        await _first_of(_pump(*ends), _pump(*reversed(ends)))
    finally:
        answer.close()
    return response


class _Feed:
    """What aiohttp hands bytes to once a connection has left HTTP."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        self._tunnel.feed(data)
        return False, b""

    def feed_eof(self) -> None:
        self._tunnel.feed_eof()


def _tunnel(protocol: Any) -> Tunnel:
    """The connection of a protocol of aiohttp's, its server's or its client's."""
    loop = asyncio.get_running_loop()
    tunnel = Tunnel(protocol.transport, StreamWriter(protocol, loop).drain, loop.create_future())
    feed = _Feed(tunnel)
    if isinstance(protocol, web.RequestHandler):
        protocol.set_parser(feed)  # type: ignore[arg-type]
    else:
        protocol.set_parser(feed, None)
    return tunnel


async def _pump(source: Tunnel, sink: Tunnel) -> None:
    try:
        while data := await source.read():
            sink.write(data)
            await sink.drain()
    except ConnectionError:
        return


async def _first_of(*pumps: Coroutine[None, None, None]) -> None:
    tasks = [asyncio.create_task(pump) for pump in pumps]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
