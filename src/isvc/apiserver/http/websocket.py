"""A stream of lines as a WebSocket with a message for each, the way that browsers can watch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from isvc.apiserver.request import Request
from isvc.kube.errors import BadRequest
from isvc.wire.http1 import websocket
from isvc.wire.http1.message import Upgrade, Writer
from isvc.wire.http1.tunnel import Tunnel

_MAX_MESSAGE = 1 << 12  # a client that watches has nothing to say


def upgrade(request: Request, produce: Callable[[Writer], Awaitable[None]]) -> Upgrade:
    try:
        _, headers = websocket.accept(request.headers, [""])
    except websocket.BadHandshake as error:
        raise BadRequest(str(error)) from None
    return Upgrade(headers, lambda tunnel: _serve(tunnel, produce))


async def _serve(tunnel: Tunnel, produce: Callable[[Writer], Awaitable[None]]) -> None:
    lines = _Lines(tunnel)
    reading = asyncio.create_task(lines.read())
    try:
        await produce(lines)
        lines.socket.close()
    finally:
        reading.cancel()


class _Lines:
    """Writer."""

    def __init__(self, tunnel: Tunnel) -> None:
        self.socket = websocket.WebSocket(tunnel, _MAX_MESSAGE)
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.backlog = tunnel.backlog
        self.drain = tunnel.drain
        tunnel.gone.add_done_callback(self._leave)

    async def read(self) -> None:
        while await self.socket.receive():
            pass
        self._leave()

    def _leave(self, _: object = None) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    def write(self, data: bytes) -> None:
        for line in data.splitlines():
            self.socket.put(line, text=True)
