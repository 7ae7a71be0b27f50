"""Copies of requests to backends whose answers nobody reads. They never keep a request waiting."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import Final

import aiohttp
from yarl import URL

from isvc.local.gateway.endpoints.backends import Backends, Unavailable
from isvc.local.gateway.forwarding.exchange import Outgoing
from isvc.local.gateway.routes.rules import Mirror

log = logging.getLogger("isvc.gateway")

_SECONDS: Final = 30.0
_MOST: Final = 256  # under way at a time; further copies are dropped


class Mirrors:
    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._tasks: set[asyncio.Task[None]] = set()

    def send(self, session: aiohttp.ClientSession, method: str, out: Outgoing, mirror: Mirror) -> None:
        """A copy of a request whose body is there as a whole."""
        if random.random() >= mirror.share or len(self._tasks) >= _MOST:  # noqa: S311
            return
        task = asyncio.create_task(self._send(session, method, out, mirror))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, session: aiohttp.ClientSession, method: str, out: Outgoing, mirror: Mirror) -> None:
        backend = mirror.backend
        try:
            endpoint = self._backends.candidates(backend.namespace, backend.service, backend.port)[0]
            url = URL(f"http://{endpoint}{out.path_and_query}", encoded=True)
            async with (
                asyncio.timeout(_SECONDS),
                session.request(method, url, headers=out.headers, data=out.body, allow_redirects=False) as answer,
            ):
                async for _ in answer.content.iter_any():
                    pass
        except (Unavailable, aiohttp.ClientError, ValueError, TimeoutError) as error:
            log.info("a copy for %s is lost: %s", backend, error)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
