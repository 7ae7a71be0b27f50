"""`kubectl port-forward`: connections of the client, each a pair of streams, to ports of a pod.

Within a WebSocket kubectl speaks SPDY; older clients speak SPDY alone. The Python client speaks WebSocket channels, two
for each port, which carry one connection each.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from isvc.local.node.streams import spdy
from isvc.local.node.streams.channel import Channel
from isvc.local.node.streams.command_streams import (
    MAX_MESSAGE,
    UpgradeRefused,
    keep_alive,
    over,
    spdy_protocol,
    websocket_channel,
)
from isvc.toolkit.tasks import Background, cancel
from isvc.wire.http1.message import Request, Upgrade
from isvc.wire.http1.tunnel import Tunnel

_PROTOCOL: Final = "portforward.k8s.io"
_TUNNELLED: Final = f"{spdy.PROTOCOL}+{_PROTOCOL}"
_CHANNELS: Final = "v4.channel.k8s.io"


class CannotConnect(Exception):
    """The pod has no such port, or nothing listens there; the message is for the client."""


Connect = Callable[[int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
"""A connection to a port of the pod. Raises CannotConnect."""


def upgrade(request: Request, ports: Sequence[int], connect: Connect) -> Upgrade:
    """`ports` are those in the request, which only WebSocket channels need."""
    from isvc.wire.http1 import websocket

    if not websocket.is_handshake(request.headers):
        chosen = spdy_protocol(request, [_PROTOCOL])
        headers = {"Upgrade": spdy.PROTOCOL, "X-Stream-Protocol-Version": chosen}
        return Upgrade(headers, lambda tunnel: _over_spdy(tunnel, connect))
    try:
        chosen, headers = websocket.accept(request.headers, (_TUNNELLED, _CHANNELS) if ports else (_TUNNELLED,))
    except websocket.BadHandshake as error:
        raise UpgradeRefused(str(error)) from None
    if chosen == _TUNNELLED:
        return Upgrade(headers, lambda tunnel: _over_tunnelled_spdy(tunnel, connect))
    return Upgrade(headers, lambda tunnel: _over_channels(tunnel, ports, connect))


async def _over_spdy(tunnel: Tunnel, connect: Connect) -> None:
    forwarder = _Forwarder(connect)
    session = forwarder.session = spdy.SpdySession(tunnel.read, over(tunnel), forwarder.add_stream)
    async with keep_alive(tunnel, session.run(), session.ping) as left:
        await forwarder.serve(left)


async def _over_tunnelled_spdy(tunnel: Tunnel, connect: Connect) -> None:
    from isvc.wire.http1.websocket import WebSocket

    socket, forwarder = WebSocket(tunnel, MAX_MESSAGE), _Forwarder(connect)
    session = forwarder.session = spdy.SpdySession(socket.receive, socket.send, forwarder.add_stream)
    async with keep_alive(tunnel, session.run(), session.ping) as left:
        await forwarder.serve(left)
        socket.close()


async def _over_channels(tunnel: Tunnel, ports: Sequence[int], connect: Connect) -> None:
    from isvc.wire.http1.websocket import WebSocket

    socket = WebSocket(tunnel, MAX_MESSAGE)

    async def receive() -> None:
        while message := await socket.receive():
            if message[0] < len(channels) and message[1:]:
                await channels[message[0]].feed(message[1:])

    async def ping() -> None:
        socket.ping()

    channels = [websocket_channel(socket, number) for number in range(2 * len(ports))]
    for number, each in enumerate(channels):
        await each.write(ports[number // 2].to_bytes(2, "little"))
    pairs = zip(ports, channels[::2], channels[1::2], strict=True)
    async with keep_alive(tunnel, receive(), ping) as left:
        work = asyncio.gather(*(_forward(port, data, error, connect) for port, data, error in pairs))
        await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
        await cancel(work)
        socket.close()


class _Forwarder:
    """Pairs the streams of a SPDY session by their request, and forwards each pair."""

    session: spdy.SpdySession

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._halves: dict[str, dict[str, Channel]] = {}
        self._tasks = Background()

    def add_stream(self, headers: Mapping[str, str], channel: Channel) -> None:
        request, port = headers.get("requestid", ""), headers.get("port", "")
        halves = self._halves.setdefault(request, {})
        halves[headers.get("streamtype", "")] = channel
        if {"data", "error"} <= halves.keys():
            del self._halves[request]
            number = int(port) if port.isascii() and port.isdigit() else 0
            self._tasks.start(self._pair(number, halves["data"], halves["error"]))

    async def _pair(self, port: int, data: Channel, error: Channel) -> None:
        try:
            await _forward(port, data, error, self._connect)
        finally:
            self.session.forget(data, error)

    async def serve(self, left: asyncio.Future[None]) -> None:
        await left
        await cancel(*self._tasks)


async def _forward(port: int, data: Channel, error: Channel, connect: Connect) -> None:
    try:
        reader, writer = await connect(port)
    except CannotConnect as problem:
        await error.write(str(problem).encode())
    else:
        upload = asyncio.create_task(_upload(data, writer))
        try:
            with contextlib.suppress(ConnectionError):
                while chunk := await reader.read(1 << 16):
                    await data.write(chunk)
        finally:
            await cancel(upload)
            writer.close()
    data.ignore()
    with contextlib.suppress(ConnectionError):
        await data.close()
        await error.close()


async def _upload(data: Channel, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while chunk := await data.read():
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
