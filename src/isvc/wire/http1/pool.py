"""Connections to a server, or to several, kept alive between requests.

A request that hits a connection which the server had just closed is sent once more, on a new one, if repeating it does
no harm. No other failure is retried here.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

from isvc.wire.http1.client_connection import MAX_BODY, ClientConnection, Reply, Stale
from isvc.wire.http1.dial import Proxy, connected_socket

IDEMPOTENT = frozenset(("GET", "HEAD", "PUT", "DELETE"))  # RFC 9110, 9.2.2; a POST or PATCH may have been carried out
CONNECT_SECONDS = 10.0
MANY_SERVERS = 100


class Streamed(NamedTuple):
    head: Reply
    connection: ClientConnection

    def pieces(self, silence: float | None = None) -> AsyncGenerator[bytes, None]:
        return self.connection.pieces(silence)


class Pool:
    def __init__(
        self,
        host: str,
        port: int,
        *,
        limit: int,
        idle_seconds: float,
        max_body: int = MAX_BODY,
        server_name: str = "",
        proxy: Proxy | None = None,
    ) -> None:
        """Makes at most `limit` exchanges at once, streams not counted. `server_name` is the one in the certificate."""
        self._max_body = max_body
        self._host, self._port, self._server_name, self._proxy = host, port, server_name or host, proxy
        self._slots = asyncio.Semaphore(limit)
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._idle: deque[tuple[ssl.SSLContext | None, ClientConnection]] = deque()
        self._open: set[ClientConnection] = set()

    async def exchange(self, method: str, request: bytes, tls: ssl.SSLContext | None) -> Reply:
        async with self._slots:
            connection = self._take_idle(tls) or await self._connect(tls)
            try:
                return await self._exchange(connection, method, request, tls)
            except Stale:
                if method not in IDEMPOTENT:
                    raise
            return await self._exchange(await self._connect(tls), method, request, tls)

    async def _exchange(
        self, connection: ClientConnection, method: str, request: bytes, tls: ssl.SSLContext | None
    ) -> Reply:
        try:
            return await connection.exchange(request, without_body=method == "HEAD")
        finally:
            self._release(connection, tls)

    @asynccontextmanager
    async def stream(self, request: bytes, tls: ssl.SSLContext | None, head_seconds: float) -> AsyncIterator[Streamed]:
        """Yields the response to a GET, read as it comes; raises TimeoutError when its head takes too long."""
        connection = self._take_idle(tls) or await self._connect(tls)
        try:
            async with asyncio.timeout(head_seconds):
                try:
                    head = await connection.head(request)
                except Stale:
                    connection = await self._connect(tls)
                    head = await connection.head(request)
            yield Streamed(head, connection)
        finally:
            self._release(connection, tls)

    @property
    def is_unused(self) -> bool:
        return not self._open

    async def close(self) -> None:
        self._limit = 0
        self._idle.clear()
        for connection in list(self._open):
            connection.close()
        await asyncio.sleep(0)  # lets TLS connections say goodbye

    def _take_idle(self, tls: ssl.SSLContext | None) -> ClientConnection | None:
        """Returns the connection used last, if its TLS settings are still those asked for."""
        now = asyncio.get_running_loop().time()
        while self._idle and now - self._idle[0][1].idle_since > self._idle_seconds:
            self._idle.popleft()[1].close()
        while self._idle:
            made_with, connection = self._idle.pop()
            if made_with is tls and connection.reusable:
                return connection
            connection.close()
        return None

    def _release(self, connection: ClientConnection, tls: ssl.SSLContext | None) -> None:
        if connection.reusable and len(self._idle) < self._limit:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append((tls, connection))
        else:
            connection.abort()

    async def _connect(self, tls: ssl.SSLContext | None) -> ClientConnection:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                sock = await connected_socket(self._host, self._port, self._proxy)
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: ClientConnection(self._open.discard, self._max_body),
                    sock=sock,
                    ssl=tls,
                    server_hostname=self._server_name if tls else None,
                )
        except TimeoutError:
            raise ConnectionError(f"no connection within {CONNECT_SECONDS:.0f} s") from None
        self._open.add(connection)
        return connection


class Pools:
    """A pool for each server that is asked. What nobody needs any more is forgotten when there are many."""

    def __init__(self, *, limit: int, idle_seconds: float, max_body: int = MAX_BODY) -> None:
        self._new = partial(Pool, limit=limit, idle_seconds=idle_seconds, max_body=max_body)
        self._pools: dict[tuple[str, int, str], Pool] = {}

    def to(self, host: str, port: int, server_name: str = "") -> Pool:
        key = (host, port, server_name)
        if key not in self._pools:
            if len(self._pools) >= MANY_SERVERS:
                self._pools = {at: pool for at, pool in self._pools.items() if not pool.is_unused}
            self._pools[key] = self._new(host, port, server_name=server_name)
        return self._pools[key]

    async def close(self) -> None:
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        self._pools.clear()
