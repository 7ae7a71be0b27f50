"""Requests for Revisions on their way through the gateway: counted, held while no pod can take them, then let through.

Requests wait in line. A pod gets no more of them at a time than the Revision's `containerConcurrency`. One that waits
longer than the Revision's timeout, or finds the line full, is answered 503 with the reason.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from isvc.kube.objects import Key, Object, dig, labels_of, namespace_of
from isvc.kube.resource import ENDPOINT_SLICES, SERVICE_NAME_LABEL
from isvc.local.gateway.endpoints.backends import Backends, Endpoint, Unavailable
from isvc.local.knative.demand import Demand
from isvc.local.knative.kinds import REVISIONS
from isvc.local.knative.workload import PORT
from isvc.toolkit.cache import Cache
from isvc.toolkit.clock import Clock
from isvc.toolkit.reads import Read

LONGEST_LINE: Final = 10_000


class Line:
    """The requests for one Revision: those that wait, and those that its pods have."""

    def __init__(
        self, key: Key, backends: Backends, clock: Clock, wake: Callable[[Key], None], longest: int = LONGEST_LINE
    ) -> None:
        """`wake` is called when a request comes that no pod can take."""
        self.key = key
        self.concurrency = 0
        self.timeout = 300.0
        self.demand = Demand()
        self._backends = backends
        self._clock = clock
        self._wake = wake
        self._longest = longest
        self._waiting: deque[asyncio.Future[Endpoint]] = deque()

    def update(self, revision: Object) -> None:
        self.concurrency = int(dig(revision, "spec", "containerConcurrency") or 0)
        self.timeout = float(dig(revision, "spec", "timeoutSeconds") or 300)

    @asynccontextmanager
    async def admitted(self) -> AsyncIterator[Endpoint]:
        """Yields an endpoint that takes the request, for as long as the request is under way. Raises Unavailable."""
        self.demand.begin(self._clock.monotonic())
        try:
            endpoint = self._free() if not self._waiting else None
            if endpoint is None:
                endpoint = await self._wait()
            else:
                self._backends.started(endpoint)
            try:
                yield endpoint
            finally:
                self._backends.ended(endpoint)
                self.advance()
        finally:
            self.demand.end(self._clock.monotonic())

    def advance(self) -> None:
        """Lets those go who wait and for whom there is an endpoint now."""
        while self._waiting and (endpoint := self._free()) is not None:
            first = self._waiting.popleft()
            if not first.done():
                self._backends.started(endpoint)
                first.set_result(endpoint)

    def _free(self) -> Endpoint | None:
        """Returns the least busy endpoint, if it takes one more request."""
        try:
            least_busy, *_ = self._backends.candidates(self.key.namespace, self.key.name, PORT)
        except Unavailable:
            return None
        taken = self._backends.running(least_busy)
        return least_busy if not self.concurrency or taken < self.concurrency else None

    async def _wait(self) -> Endpoint:
        if len(self._waiting) >= self._longest:
            raise Unavailable(f"{len(self._waiting)} requests wait for revision {self.key} already")
        place: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._wake(self.key)
        try:
            async with asyncio.timeout(self.timeout):
                return await place
        except BaseException as error:
            if place.done() and not place.cancelled():  # it was let go in the moment in which it gave up
                self._backends.ended(place.result())
            elif place in self._waiting:
                self._waiting.remove(place)
            self.advance()
            if isinstance(error, TimeoutError):
                raise Unavailable(f"no pod of revision {self.key} took the request within {self.timeout:g} s") from None
            raise


class Activator:
    """The lines of all Revisions in a cache."""

    def __init__(self, cache: Cache, backends: Backends, clock: Clock) -> None:
        self._lines: dict[tuple[str, str], Line] = {}
        self._backends = backends
        self._clock = clock
        self.wake: Callable[[Key], None] = lambda key: None
        cache.declare("activator", Read(REVISIONS))
        cache.subscribe(REVISIONS, self._revision_changed)
        cache.subscribe(ENDPOINT_SLICES, self._endpoints_changed)

    def line(self, namespace: str, service: str) -> Line | None:
        """Returns where requests for a Service line up; None for one that is not of a Revision."""
        return self._lines.get((namespace, service))

    def _revision_changed(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            key = Key.of(before or {"metadata": {}})
            self._lines.pop((key.namespace, key.name), None)
            return
        key = Key.of(after)
        line = self._lines.get((key.namespace, key.name))
        if line is None:
            line = Line(key, self._backends, self._clock, lambda key: self.wake(key))
            self._lines[key.namespace, key.name] = line
        line.update(after)

    def _endpoints_changed(self, before: Object | None, after: Object | None) -> None:
        changed = after or before or {"metadata": {}}
        service = labels_of(changed).get(SERVICE_NAME_LABEL)
        if service and (line := self._lines.get((namespace_of(changed), service))):
            line.advance()
