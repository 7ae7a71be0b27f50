"""The asking side: connections to servers that are known to speak HTTP/2, each shared by many requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, cast

from h2 import events
from h2.errors import ErrorCodes
from h2.exceptions import H2Error

from isvc.wire.http2.connection import Connection
from isvc.wire.http2.stream import Headers, Refused, Stream

_CONNECT_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 60.0
_STATUS: Final = re.compile(rb"[1-5][0-9][0-9]").fullmatch
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9a-z-]+").fullmatch
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search
_OF_CONNECTIONS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)  # RFC 9113, 8.2.2


def are_sound(headers: Headers) -> bool:
    """Returns whether they are headers of HTTP/2: nothing could end one of them elsewhere, none is a connection's."""
    return all(_NAME(name) and not _CONTROL(value) and name not in _OF_CONNECTIONS for name, value in headers)


class ClientConnection(Connection):
    def __init__(self) -> None:
        super().__init__(client_side=True)
        self._is_leaving = False  # the server takes no more requests on it
        self.last_used = self._loop.time()

    @property
    def has_room(self) -> bool:
        if self.closed or self._is_leaving or self.transport.is_closing():
            return False
        return len(self.streams) < self._h2.remote_settings.max_concurrent_streams

    def open(self, headers: Headers, *, end: bool) -> Stream:
        self.last_used = self._loop.time()
        try:
            number = self._h2.get_next_available_stream_id()
        except H2Error as error:
            self._is_leaving = True
            raise Refused(str(error)) from None
        stream = self.streams[number] = Stream(self, number)
        try:
            stream.send_headers(headers, end=end)
        except ConnectionError:
            self.streams.pop(number, None)
            raise
        return stream

    def _on_response(self, event: events.ResponseReceived) -> None:
        if stream := self.streams.get(event.stream_id or 0):
            head = cast("Headers", event.headers or [])
            if head and head[0][0] == b":status" and _STATUS(head[0][1]) and are_sound(head[1:]):
                stream.received_head(head)
            else:
                stream.reset(ErrorCodes.PROTOCOL_ERROR)

    def _on_trailers(self, event: events.TrailersReceived) -> None:
        if stream := self.streams.get(event.stream_id or 0):
            trailers = cast("Headers", event.headers or [])
            if are_sound(trailers):
                stream.received_trailers(trailers)
            else:
                stream.reset(ErrorCodes.PROTOCOL_ERROR)

    def _on_reset(self, event: events.StreamReset) -> None:
        stream = self.streams.get(event.stream_id or 0)
        if stream is not None and event.error_code == ErrorCodes.REFUSED_STREAM:
            stream.fail(Refused("the server refused the stream"))
        else:
            super()._on_reset(event)

    def _on_goodbye(self, event: events.ConnectionTerminated) -> None:
        self._is_leaving = True
        last = event.last_stream_id or 0
        for number, stream in list(self.streams.items()):
            if number > last:
                stream.fail(Refused("the server left before it saw the request"))

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        **Connection._HANDLERS,
        events.ResponseReceived: _on_response,
        events.TrailersReceived: _on_trailers,
        events.StreamReset: _on_reset,
        events.ConnectionTerminated: _on_goodbye,
    }


class Pool:
    """Connections by address. A new one is made when there is none, or all have as many streams as they may."""

    def __init__(self) -> None:
        self._connections: dict[tuple[str, int], list[ClientConnection]] = {}
        self._dialing: dict[tuple[str, int], asyncio.Lock] = {}

    async def open(self, host: str, port: int, headers: Headers, *, end: bool = False) -> Stream:
        """Raises OSError where nobody accepts connections, Refused if it may be asked again, Broken if not."""
        address = (host, port)
        connection = self._with_room(address)
        if connection is None:
            async with self._dialing.setdefault(address, asyncio.Lock()):
                connection = self._with_room(address) or await self._dial(address)
        return connection.open(headers, end=end)

    async def close(self) -> None:
        for connections in self._connections.values():
            for connection in connections:
                connection.close()
        self._connections.clear()

    def _with_room(self, address: tuple[str, int]) -> ClientConnection | None:
        return next((each for each in self._connections.get(address, ()) if each.has_room), None)

    async def _dial(self, address: tuple[str, int]) -> ClientConnection:
        self._drop_unused()
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, connection = await loop.create_connection(ClientConnection, *address)
        except TimeoutError:
            raise OSError(f"no connection within {_CONNECT_SECONDS:g} s") from None
        self._connections.setdefault(address, []).append(connection)
        return connection

    def _drop_unused(self) -> None:
        now = asyncio.get_running_loop().time()
        for address, connections in list(self._connections.items()):
            for each in connections:
                if not each.closed and not each.streams and now - each.last_used > _IDLE_SECONDS:
                    each.close()
            connections[:] = [each for each in connections if not each.closed]
            if not connections:
                del self._connections[address]
                self._dialing.pop(address, None)
