"""Keeps ports open while Envoy is away: clients that come in that moment wait for the next one, and none is refused.

Our socket listens beside those of Envoy's workers. A program has the kernel give every connection to one of theirs, at
random; where it names a socket that is not there, the kernel takes the one that is left, which is ours. Connections
that Envoy had not accepted when it died are not reset with it, as we have its sockets open, too, and accept them then.
Linux has that; elsewhere a port is closed for a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from isvc.local.child import Child
from isvc.toolkit.tasks import Background, cancel

_SO_ATTACH_REUSEPORT_CBPF: Final = 51
_PIDFD_GETFD: Final = 438
_LOAD_RANDOM: Final = (0x20, 0xFFFFF000 + 56)  # instructions of the kernel's socket filters, and their operands
_MODULO: Final = 0x94
_ADD: Final = 0x04
_RETURN: Final = (0x16, 0)
_RETURN_FIRST: Final = (0x06, 0)
_BACKLOG: Final = 1024
_CHUNK: Final = 1 << 16
_PATIENCE: Final = 30.0


class SpareSockets:
    def __init__(self, workers: int) -> None:
        """Envoy has a socket for each of its workers."""
        self._any_worker = [_LOAD_RANDOM, (_MODULO, workers), (_ADD, 1), _RETURN]
        self._spares: dict[Any, socket.socket] = {}  # by their addresses
        self._servers: list[asyncio.Server] = []
        self._tasks = Background()
        self.is_live = asyncio.Event()  # whether Envoy takes connections, and we stand by

    async def open(self, host: str, port: int) -> None:
        """Has to come before Envoy listens there. Raises OSError where somebody else does."""
        spare = _bound(host, port)
        try:
            _choose(spare, self._any_worker)
        except OSError:  # no Linux
            spare.close()
            return
        self._spares[spare.getsockname()] = spare
        self._servers.append(await asyncio.start_server(self._accept, sock=spare, backlog=_BACKLOG))

    def stand_by(self, envoy: Child, live: Callable[[], Awaitable[None]]) -> None:
        """Has what Envoy leaves behind when it ends accepted here; `live` returns when it takes some."""
        self._tasks.start(self._stand_by(envoy, live))

    async def _stand_by(self, envoy: Child, live: Callable[[], Awaitable[None]]) -> None:
        while True:
            await live()
            with contextlib.ExitStack() as sharing:
                shared = [sharing.enter_context(each) for each in _listening(envoy.pid or 0)]
                self.is_live.set()
                await envoy.wait()
                self.is_live.clear()
                waiting = [connection for each in shared for connection in self._take_over(each)]
            for connection in waiting:
                self._accept(*await asyncio.open_connection(sock=connection))

    def _take_over(self, listening: socket.socket) -> Iterable[socket.socket]:
        """Yields the connections that wait at a socket of Envoy's, and closes it when it gets no further ones."""
        if spare := self._spares.get(listening.getsockname()):
            _choose(spare, [_RETURN_FIRST])
            listening.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    yield listening.accept()[0]
            listening.close()
            _choose(spare, self._any_worker)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start(self._relay(reader, writer))

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes on what a connection has to say, for as long as it lasts."""
        host, port = writer.get_extra_info("sockname")[:2]
        with contextlib.suppress(OSError, TimeoutError), contextlib.closing(writer):
            async with asyncio.timeout(_PATIENCE):
                await self.is_live.wait()
            from_envoy, to_envoy = await asyncio.open_connection(host, port)
            with contextlib.closing(to_envoy):
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pump(reader, to_envoy))
                    both.create_task(_pump(from_envoy, writer))

    async def close(self) -> None:
        for server in self._servers:
            server.close()
        await cancel(*self._tasks)


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
        sink.write_eof()
    except OSError:
        sink.close()


def _bound(host: str, port: int) -> socket.socket:
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
    return found


def _choose(first: socket.socket, steps: Sequence[tuple[int, int]]) -> None:
    """Has the kernel choose among the sockets of a port, of which one is the first. Raises OSError where it cannot."""
    code = b"".join(struct.pack("HBBI", step, 0, 0, operand) for step, operand in steps)
    kept = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HP", len(steps), ctypes.addressof(kept))  # struct sock_fprog
    first.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_REUSEPORT_CBPF, program)


def _listening(pid: int) -> list[socket.socket]:
    """Returns the sockets on which another process of ours listens; none where the kernel keeps them from us."""
    found: list[socket.socket] = []
    with contextlib.suppress(OSError, AttributeError), contextlib.ExitStack() as opened:
        process = os.pidfd_open(pid)
        opened.callback(os.close, process)
        copies = (
            ctypes.CDLL(None).syscall(_PIDFD_GETFD, process, int(link.name), 0)
            for link in Path(f"/proc/{pid}/fd").iterdir()
            if os.readlink(link).startswith("socket:")
        )
        for each in (socket.socket(fileno=copy) for copy in copies if copy >= 0):
            if each.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                found.append(each)
            else:
                each.close()
    return found
