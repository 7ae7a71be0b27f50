"""The serving side of a connection: who may keep it open."""

from __future__ import annotations

import asyncio

import pytest

from isvc.wire.http1 import connection
from isvc.wire.http1.connection import Connection
from isvc.wire.http1.message import Request


class Silent(Connection[Request]):
    request_type = Request


async def test_who_sends_headers_one_byte_at_a_time_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    connections: set[Connection[Request]] = set()
    server = await asyncio.get_running_loop().create_server(lambda: Silent(connections), "127.0.0.1", 0)
    _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"GET / HTTP/1.1\r\nX: ")
    async with asyncio.timeout(60):
        while not connections:
            await asyncio.sleep(0.01)
        [slow] = connections
        while not slow.closed.done():
            if not writer.is_closing():
                writer.write(b"x")
            slow.close_if_idle(600)
            await asyncio.sleep(0.01)
    writer.close()
    server.close()
