"""A TCP load balancer on one port, as a Service is for the replicas of a Deployment."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import count


class Balancer:
    """Connects each client to the next backend port that accepts; `ports` may change at any time.

    One that is `strict` is as kube-proxy: who comes to a port where nobody listens is turned away.
    """

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.strict = False
        self._turn = count()
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Balancer:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(1 if self.strict else len(self.ports)):
            port = self.ports[next(self._turn) % len(self.ports)]
            with suppress(ConnectionError):
                answers, backend = await asyncio.open_connection("127.0.0.1", port)
                try:
                    await asyncio.gather(_copy(reader, backend), _copy(answers, writer))
                finally:
                    backend.close()
                return


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    with suppress(OSError, RuntimeError):
        target.write_eof()
