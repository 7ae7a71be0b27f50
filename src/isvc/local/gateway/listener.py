"""The gateway's port: HTTP/1.1 and HTTP/2 on one, distinguished by the first bytes of a connection."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable
from typing import Final, cast

from isvc.local.gateway.proxy import Proxy
from isvc.local.gateway.requests.http2 import Http2Request
from isvc.wire.http2.server import ServerConnection
from isvc.wire.http2.stream import Stream

_PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_SECONDS_TO_END: Final = 5.0


class Listener:
    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._http1 = proxy.server()
        self._http2: set[ServerConnection] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """The port, which is a free one for 0."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._connection, host, port, backlog=1024, ssl=tls)
        self._servers.append(server)
        found: int = server.sockets[0].getsockname()[1]
        return found

    def _connection(self) -> asyncio.Protocol:
        return _FirstBytes(self._http1, lambda: ServerConnection(self._answer, self._http2), self._proxy.idle_seconds)

    async def _answer(self, stream: Stream, connection: ServerConnection) -> None:
        request = Http2Request(stream, connection)
        await request.answer(await self._proxy(request))

    async def close(self) -> None:
        """Ends what is under way, after a while if need be."""
        for server in self._servers:
            server.close()
        self._http1.pre_shutdown()
        with contextlib.suppress(Exception):
            await asyncio.gather(*(each.leave(_SECONDS_TO_END) for each in list(self._http2)))
        await self._http1.shutdown(_SECONDS_TO_END)


class _FirstBytes(asyncio.Protocol):
    """Hands a connection to the protocol that its client speaks, once that is known."""

    def __init__(
        self, http1: Callable[[], asyncio.Protocol], http2: Callable[[], asyncio.Protocol], seconds: float
    ) -> None:
        self._http1, self._http2 = http1, http2
        self._seconds = seconds
        self._data = b""
        self._transport: asyncio.Transport
        self._timer: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._timer = asyncio.get_running_loop().call_later(self._seconds, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._data += data
        if len(self._data) < len(_PREFACE) and _PREFACE.startswith(self._data):
            return
        self._timer.cancel()
        protocol = (self._http2 if self._data.startswith(_PREFACE) else self._http1)()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        protocol.data_received(self._data)
