"""Picks an endpoint of an InferencePool for each request, as an endpoint picker on a cluster does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Final

from isvc.kube.resource import PODS
from isvc.local.gateway.endpoints import pools
from isvc.local.gateway.endpoints.endpoint import Endpoint, Running
from isvc.local.gateway.endpoints.picker import Picker
from isvc.local.gateway.processor.lines import Unavailable
from isvc.local.gateway.processor.messages import ProcessingRequest, ProcessingResponse, Question, echo, go_on
from isvc.local.gateway.routes.rules import Target
from isvc.toolkit.cache import Reader

if TYPE_CHECKING:
    import aiohttp

_READ: Final = 1 << 20  # bytes of a body in which a prompt is looked for


class Pools:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._running = Running()
        self._picker = Picker(self._metrics, self._running.__getitem__)
        self._session: aiohttp.ClientSession | None = None

    async def pick(
        self,
        members: list[pools.Member],
        question: Question,
        requests: AsyncIterator[ProcessingRequest],
        lasting: AsyncExitStack,
    ) -> AsyncIterator[ProcessingResponse]:
        """Yields the endpoints, best first, and the body that was read to find them."""
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
        lasting.enter_context(self._running.count(ordered[0].endpoint))
        yield go_on([member.endpoint for member in ordered])
        for part in read:
            yield echo(part)

    def members(self, target: Target) -> list[pools.Member]:
        """Returns the pods of a pool that can be asked. Raises Unavailable where there is none."""
        assert target.pool is not None
        pool = self._reader.get(target.pool, target.key.name, target.key.namespace)
        if pool is None:
            raise Unavailable(f"InferencePool {target.key} does not exist")
        pods = self._reader.list(PODS, target.key.namespace)
        if found := pools.members(pods, pool):
            return found
        candidates = pools.candidates(pods, pool)
        count = f"{len(candidates)} pod{'s' if len(candidates) != 1 else ''}, none ready" if candidates else "no pods"
        raise Unavailable(f"InferencePool {target.key} has {count}")

    def endpoints(self, target: Target) -> list[Endpoint]:
        """Returns where those pods answer; nothing where there is none."""
        with suppress(Unavailable):
            return [member.endpoint for member in self.members(target)]
        return []

    async def _metrics(self, endpoint: Endpoint) -> bytes:
        import aiohttp  # the start does without

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
