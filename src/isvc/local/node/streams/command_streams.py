"""The streams of `kubectl exec` and `attach`, over WebSocket channels or SPDY, whichever the client asks for."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from isvc.kube.objects import Object
from isvc.local.node.streams import spdy
from isvc.local.node.streams.channel import Channel
from isvc.local.node.streams.spdy_headers import Malformed
from isvc.toolkit.tasks import cancel
from isvc.wire.http1.message import Request, Upgrade
from isvc.wire.http1.tunnel import Tunnel

if TYPE_CHECKING:
    from isvc.wire.http1.websocket import WebSocket

log = logging.getLogger("isvc.node")

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
MAX_MESSAGE: Final = 16 << 20
PING_SECONDS = 2.0  # a peer that is gone is noticed by what it does not take
_LINGER = 2.0  # for the client to take the end of the output before the connection closes
_OPENING = 30.0
_CLOSE = 255  # on which a client of v5 says which other channel it has ended


@dataclass(frozen=True, slots=True)
class Wanted:
    """The streams that a client asks for."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Returns names in the order of WebSocket channels; a terminal has no standard error of its own."""
        has_stderr = self.stderr and not self.tty
        wanted = {"stdin": self.stdin, "stdout": self.stdout, "stderr": has_stderr, "error": True, "resize": self.tty}
        return tuple(name for name, there in wanted.items() if there)


Streams = dict[str, Channel]
Serve = Callable[[Streams], Awaitable[Object]]
"""Runs what the streams belong to, and gives the Status for the client to end with."""

_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2, "error": 3, "resize": 4}


class UpgradeRefused(Exception):
    """The request does not ask for a protocol that is spoken here."""


def upgrade(request: Request, wanted: Wanted, serve: Serve) -> Upgrade:
    from isvc.wire.http1 import websocket  # 50 ms, which only those pay who get into a pod

    if websocket.is_handshake(request.headers):
        try:
            _, headers = websocket.accept(request.headers, PROTOCOLS)
        except websocket.BadHandshake as error:
            raise UpgradeRefused(str(error)) from None
        return Upgrade(headers, lambda tunnel: _over_websocket(tunnel, wanted, serve))
    chosen = spdy_protocol(request, PROTOCOLS)
    headers = {"Upgrade": spdy.PROTOCOL, "X-Stream-Protocol-Version": chosen}
    return Upgrade(headers, lambda tunnel: _over_spdy(tunnel, wanted, serve))


def spdy_protocol(request: Request, known: Sequence[str]) -> str:
    """Returns the protocol within SPDY that both sides know."""
    if request.headers.get("upgrade", "").upper() != spdy.PROTOCOL:
        raise UpgradeRefused("an upgrade to WebSocket or SPDY/3.1 is required")
    offered = [each.strip() for each in request.headers.get("x-stream-protocol-version", "").split(",")]
    for each in offered:
        if each in known:
            return each
    raise UpgradeRefused(f"none of the protocols {', '.join(offered)} is known here, only {', '.join(known)}")


async def _over_websocket(tunnel: Tunnel, wanted: Wanted, serve: Serve) -> None:
    from isvc.wire.http1.websocket import WebSocket

    socket = WebSocket(tunnel, MAX_MESSAGE)

    async def receive() -> None:
        while message := await socket.receive():
            if message[0] == _CLOSE and len(message) == 2:
                number, data = message[1], b""
            else:
                number, data = message[0], message[1:]
                if not data:
                    continue
            if number in numbered:
                await numbered[number].feed(data)

    async def ping() -> None:
        socket.ping()

    streams = {name: websocket_channel(socket, _NUMBERS[name]) for name in wanted.names}
    numbered = {_NUMBERS[name]: each for name, each in streams.items()}
    await socket.send(bytes((min(number for number in numbered if number),)))  # so that the client knows of its success
    async with keep_alive(tunnel, receive(), ping) as left:
        await _until_end(streams, serve, left)
        socket.close()


def websocket_channel(socket: WebSocket, number: int) -> Channel:
    """Returns a stream within a WebSocket, whose messages begin with the stream's number."""

    async def send(data: bytes, last: bool) -> None:
        if not last:  # the end of a channel is that of the connection
            await socket.send(bytes((number,)) + data)

    return Channel(send)


async def _over_spdy(tunnel: Tunnel, wanted: Wanted, serve: Serve) -> None:
    streams: Streams = {}
    complete = asyncio.Event()

    def add_stream(headers: object, channel: Channel) -> None:
        assert isinstance(headers, dict)
        streams.setdefault(headers.get("streamtype", ""), channel)
        if all(name in streams for name in wanted.names):
            complete.set()

    session = spdy.SpdySession(tunnel.read, over(tunnel), add_stream)
    async with keep_alive(tunnel, session.run(), session.ping) as left:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_OPENING):
                await first_of(complete.wait(), left)
        if complete.is_set():
            await _until_end(streams, serve, left)


def over(tunnel: Tunnel) -> Callable[[bytes], Awaitable[None]]:
    async def write(data: bytes) -> None:
        tunnel.write(data)
        await tunnel.drain()

    return write


async def _until_end(streams: Streams, serve: Serve, left: asyncio.Future[None]) -> None:
    """Serves until it is done, or the client has left."""
    work = asyncio.ensure_future(serve(streams))
    try:
        await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            for name in ("stdin", "resize"):
                if name in streams:
                    streams[name].ignore()
            with contextlib.suppress(ConnectionError):  # of a client that left meanwhile
                await streams["error"].write(orjson.dumps(work.result()))
                for name in ("stdout", "stderr", "error"):
                    if name in streams:
                        await streams[name].close()
    finally:
        await cancel(work)


async def first_of(step: Awaitable[object], left: asyncio.Future[None]) -> None:
    task = asyncio.ensure_future(step)
    try:
        await asyncio.wait((task, left), return_when=asyncio.FIRST_COMPLETED)
    finally:
        task.cancel()


@contextlib.asynccontextmanager
async def keep_alive(
    tunnel: Tunnel, receiving: Awaitable[None], ping: Callable[[], Awaitable[None]]
) -> AsyncIterator[asyncio.Future[None]]:
    """Reads from the client meanwhile, and pings it; gives a future that is done when the client has left."""

    async def receive() -> None:
        try:
            await receiving
        except Malformed as error:
            log.info("a client of a pod was disconnected: %s", error)

    async def remind() -> None:
        while True:
            await asyncio.sleep(PING_SECONDS)
            await ping()

    reader, pings = asyncio.ensure_future(receive()), asyncio.ensure_future(remind())
    left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave(_: object) -> None:
        if not left.done():
            left.set_result(None)

    for end in (reader, tunnel.gone):
        end.add_done_callback(leave)
    try:
        yield left
        await asyncio.wait((left,), timeout=_LINGER)
    finally:
        await cancel(reader, pings)
