"""Ports and the connections to them: what every server needs that is asked by strangers.

Silent connections are closed, and so are those whose headers come too slowly. Where there are too many, the one that
has been idle for longest makes room; where bodies that are not complete fill the memory, the one that began first. A
certificate that was replaced is shown to the next client. At the end what was asked is still answered.
"""

from __future__ import annotations

import asyncio
import math
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Generic

from isvc.wire.http1.connection import Connection, Handler, R
from isvc.wire.x509.files import CertificateFiles

BACKLOG = 512
HANDSHAKE_SECONDS = 10.0
SWEEP_SECONDS = 5.0
DRAIN_SECONDS = 5.0
GOODBYE_SECONDS = 0.5  # for answers to leave and TLS to end


class HttpServer(Generic[R]):
    def __init__(
        self,
        handler: Handler[R],
        *,
        idle_seconds: float,
        tls: ssl.SSLContext | CertificateFiles | None = None,
        max_connections: int = 0,
        most_held: float = math.inf,
    ) -> None:
        """Leaves a quarter of the process's file descriptors alone where no limit is given.

        `most_held` bounds the bytes of all bodies that are not complete.
        """
        self._handler = handler
        self._idle_seconds = idle_seconds
        self._certificate = tls if isinstance(tls, CertificateFiles) else None
        self._tls = tls.context if isinstance(tls, CertificateFiles) else tls
        self._max_connections = max_connections or most_connections()
        self._held, self._most_held = 0, most_held
        self._listeners: list[asyncio.Server] = []
        self._sweeper: asyncio.Task[None] | None = None
        self._stopping = False
        self.connections: set[Connection[R]] = set()
        self._gives_up = False

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Accepts connections; returns the address. An empty host is every address of the machine, port 0 any port."""
        listener = await asyncio.get_running_loop().create_server(
            self._accept,
            host or None,
            port,
            ssl=self._tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls else None,
            backlog=BACKLOG,
        )
        self._add(listener)
        address: tuple[str, int] = listener.sockets[0].getsockname()[:2]
        return address

    async def listen_at(self, path: Path) -> None:
        """Accepts connections without TLS at a socket in the file system, for those who may open its folder."""
        loop = asyncio.get_running_loop()
        self._add(await loop.create_unix_server(self._accept, str(path), backlog=BACKLOG))

    def _add(self, listener: asyncio.Server) -> None:
        self._listeners.append(listener)
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name="idle connections")

    def give_up_connections(self) -> None:
        """Goes on accepting, but answers once on each connection: hardly anybody asks on one while it stops."""
        self._gives_up = True
        for connection in self.connections:
            connection.answer_once_more()

    async def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Accepts no more, ends streams, answers within some seconds what was asked, and hangs up."""
        self._stopping = True
        for listener in self._listeners:
            listener.close()
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in tuple(self.connections):
            connection.leave()
        await _wait((each.answered for each in self.connections), drain_seconds)
        await _wait((each.closed for each in self.connections), GOODBYE_SECONDS)
        for connection in tuple(self.connections):
            connection.abort()

    def _accept(self) -> Connection[R]:
        if self._certificate is not None:
            self._certificate.reload()
        connection = Connection(self._handler, self._keep_in_bounds, self.connections.discard, self._note_held)
        if self._gives_up:
            connection.answer_once_more()
        return connection

    def _keep_in_bounds(self, connection: Connection[R]) -> None:
        self.connections.add(connection)
        if self._stopping:
            connection.abort()
        elif len(self.connections) > self._max_connections:
            idle = [each for each in self.connections if each.is_idle and each is not connection]
            min(idle, key=lambda each: each.since, default=connection).abort()

    def _note_held(self, change: int) -> None:
        self._held += change
        while self._held > self._most_held:
            min((each for each in self.connections if each.held), key=lambda each: each.began).abort()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._close_idle()

    def _close_idle(self) -> None:
        for connection in tuple(self.connections):  # of which the frame of a task would keep the last one
            connection.close_if_idle(self._idle_seconds)


def most_connections() -> int:
    import resource  # of Unix alone

    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return descriptors * 3 // 4 if descriptors != resource.RLIM_INFINITY else 1 << 20


async def _wait(futures: Iterable[asyncio.Future[None]], seconds: float) -> None:
    if pending := [each for each in futures if not each.done()]:
        await asyncio.wait(pending, timeout=seconds)
