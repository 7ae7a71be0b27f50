"""Keeps a port open while Envoy is away: clients that come in that moment wait for the next one, and none is refused.

Our socket listens beside Envoy's. A program has the kernel give every connection to the second socket of the port,
which is Envoy's, and to the first when there is no second. Linux has that; elsewhere a port is closed for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Final

_SO_ATTACH_REUSEPORT_CBPF: Final = 51
_RETURN: Final = 0x06
_SECOND: Final = 1
_BACKLOG: Final = 1024
_CHUNK: Final = 1 << 16
_PATIENCE: Final = 30.0


class SpareSocket:
    def __init__(self, live: Callable[[], Awaitable[None]]) -> None:
        """`live` returns when Envoy takes connections."""
        self._live = live
        self._server: asyncio.Server | None = None
        self._relayed: set[asyncio.Task[None]] = set()

    async def open(self, host: str, port: int) -> None:
        """Has to come before Envoy listens there. Raises OSError where somebody else does."""
        found = _listening(host, port)
        if found is not None:
            self._server = await asyncio.start_server(self._accept, sock=found, backlog=_BACKLOG)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._relay(reader, writer))
        self._relayed.add(task)
        task.add_done_callback(self._relayed.discard)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on what a connection has to say, for as long as it lasts."""
        host, port = writer.get_extra_info("sockname")[:2]
        with contextlib.suppress(OSError, TimeoutError), contextlib.closing(writer):
            async with asyncio.timeout(_PATIENCE):
                await self._live()
            from_envoy, to_envoy = await asyncio.open_connection(host, port)
            with contextlib.closing(to_envoy):
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pump(reader, to_envoy))
                    both.create_task(_pump(from_envoy, writer))

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._relayed:
            task.cancel()
        await asyncio.gather(*self._relayed, return_exceptions=True)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
        sink.write_eof()
    except OSError:
        sink.close()


def _listening(host: str, port: int) -> socket.socket | None:
    """Returns a socket that gets connections while it is the only one of its port; None where that cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        found.bind((host, port))
    except OSError:
        found.close()
        raise
    try:
        found.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, _choose(_SECOND))
    except OSError:
        found.close()
        return None
    return found


def _choose(number: int) -> bytes:
    """Returns a program that chooses the socket of this number, as the kernel's struct sock_fprog."""
    instruction = struct.pack("HBBI", _RETURN, 0, 0, number)
    kept = ctypes.create_string_buffer(instruction, len(instruction))
    _programs.append(kept)
    return struct.pack("HP", 1, ctypes.addressof(kept))


_programs: list[object] = []
"""The kernel reads a program from where it is, when it is attached."""
