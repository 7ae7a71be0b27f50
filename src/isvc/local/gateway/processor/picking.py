"""Picks an endpoint of an InferencePool for each request, as an endpoint picker on a cluster does."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Final

import aiohttp

from isvc.local.gateway.backends import Reader, Target
from isvc.local.gateway.endpoints import pools
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.endpoints.picker import Picker
from isvc.local.gateway.processor.lines import Unavailable
from isvc.local.gateway.processor.messages import ProcessingRequest, ProcessingResponse, Question, echo, go_on

_READ: Final = 1 << 20  # bytes of a body in which a prompt is looked for


class Pools:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._running: Counter[Endpoint] = Counter()
        self._picker = Picker(self._metrics, self._running.__getitem__)
        self._session: aiohttp.ClientSession | None = None

    async def pick(
        self, target: Target, question: Question, requests: AsyncIterator[ProcessingRequest], lasting: AsyncExitStack
    ) -> AsyncIterator[ProcessingResponse]:
        """Yields the endpoints, best first, and the body that was read to find them."""
        members = self._members(target)
        read: list[ProcessingRequest] = []
        size, is_read = 0, not question.has_body
        while not is_read and size < _READ:
            part = await anext(requests, None)
            if part is None:
                return
            read.append(part)
            size += len(part.request_body.body)
            is_read = part.request_body.end_of_stream or part.HasField("request_trailers")
        body = b"".join(part.request_body.body for part in read)
        ordered = await self._picker.order(members, body)
        lasting.enter_context(self._counted(ordered[0].endpoint))
        yield go_on([member.endpoint for member in ordered])
        for part in read:
            yield echo(part)

    def _members(self, target: Target) -> list[pools.Member]:
        assert target.pool is not None
        pool = self._reader.get(target.pool, target.key.name, target.key.namespace)
        if pool is None:
            raise Unavailable(f"InferencePool {target.key} does not exist")
        pods = self._reader.list(pools.PODS, target.key.namespace)
        if found := pools.members(pods, pool):
            return found
        candidates = pools.candidates(pods, pool)
        count = f"{len(candidates)} pod{'s' if len(candidates) != 1 else ''}, none ready" if candidates else "no pods"
        raise Unavailable(f"InferencePool {target.key} has {count}")

    @contextmanager
    def _counted(self, endpoint: Endpoint) -> Iterator[None]:
        self._running[endpoint] += 1
        try:
            yield
        finally:
            self._running[endpoint] -= 1
            if not self._running[endpoint]:
                del self._running[endpoint]

    async def _metrics(self, endpoint: Endpoint) -> bytes:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False)
        try:
            async with self._session.get(f"http://{endpoint}/metrics") as answer:
                return await answer.read()
        except aiohttp.ClientError as error:
            raise OSError(str(error)) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
