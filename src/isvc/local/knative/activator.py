"""Requests for Revisions on their way through the gateway: counted, held while no pod can take them, then let through.

Envoy takes requests to pods by itself while there are any. It asks here about those for a Revision without pods, and
about all for one whose pods take only so many at a time (`containerConcurrency`). They wait in line; one that waits
longer than the Revision's timeout, or finds the line full, is answered 503 with the reason.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from isvc.kube.objects import Key, Object, dig
from isvc.local.gateway.backends import service_cluster
from isvc.local.gateway.endpoints.endpoint import Endpoint, Running
from isvc.local.gateway.gateway import Gateway
from isvc.local.gateway.processor.lines import Unavailable
from isvc.local.gateway.routes.rules import Target
from isvc.local.gateway.traffic import Traffic
from isvc.local.knative.demand import Demand
from isvc.local.knative.kinds import REVISIONS
from isvc.local.knative.workload import PORT
from isvc.toolkit.cache import Cache
from isvc.toolkit.clock import Clock
from isvc.toolkit.reads import Read
from isvc.toolkit.tasks import cancel

LONGEST_LINE: Final = 10_000
LOOK_SECONDS: Final = 1.0


class Line:
    """The requests for one Revision that the gateway asks about: those that wait, and those that pods have."""

    def __init__(
        self,
        key: Key,
        ready: Callable[[], Sequence[Endpoint]],
        clock: Clock,
        wake: Callable[[Key], None],
        longest: int = LONGEST_LINE,
    ) -> None:
        """`ready` are the pods that Envoy knows; `wake` is called when a request comes that none of them can take."""
        self.key = key
        self.concurrency = 0
        self.timeout = 300.0
        self.demand = Demand()
        self._ready = ready
        self._clock = clock
        self._wake = wake
        self._longest = longest
        self._waiting: deque[asyncio.Future[Endpoint]] = deque()
        self._running = Running()
        self._seen = Traffic()

    @property
    def is_limited(self) -> bool:
        return self.concurrency > 0

    def update(self, revision: Object) -> None:
        self.concurrency = int(dig(revision, "spec", "containerConcurrency") or 0)
        self.timeout = float(dig(revision, "spec", "timeoutSeconds") or 300)

    def running(self, endpoint: Endpoint) -> int:
        return self._running[endpoint]

    @asynccontextmanager
    async def admit(self) -> AsyncIterator[Endpoint]:
        """Yields an endpoint that takes the request, for as long as the request is under way. Raises Unavailable."""
        self.demand.begin(self._clock.monotonic())
        try:
            endpoint = self._free() if not self._waiting else None
            if endpoint is None:
                endpoint = await self._wait()
            else:
                self._running[endpoint] += 1
            try:
                yield endpoint
            finally:
                self._running.end(endpoint)
                self.advance()
        finally:
            self.demand.end(self._clock.monotonic())

    def under_way(self) -> float:
        """Returns the requests under way, or those of the last second: who asks now and then misses short ones."""
        return max(float(self.demand.under_way), self.demand.concurrency(self._clock.monotonic(), LOOK_SECONDS))

    def idle_seconds(self) -> float | None:
        """Returns how long ago a request was last under way; None if none ever was."""
        if self.demand.under_way:
            return 0.0
        return None if self.demand.last is None else self._clock.monotonic() - self.demand.last

    def advance(self) -> None:
        """Lets those go who wait and for whom there is an endpoint now."""
        while self._waiting and (endpoint := self._free()) is not None:
            first = self._waiting.popleft()
            if not first.done():
                self._running[endpoint] += 1
                first.set_result(endpoint)

    def endpoints_changed(self) -> None:
        """Lets those go who wait. Envoy may have requests that were on their way to the last pod, which nobody counts.

        They are tried again until there is another, so nobody falls asleep because of its death.
        """
        if not self._ready():
            self.demand.last = self._clock.monotonic()
        self.advance()

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def give_up(self, reason: str, *, has_waited: bool = False) -> None:
        """Answers those who wait that nobody will take them."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_exception(Unavailable(reason, has_waited=has_waited))

    def observe(self, traffic: Traffic) -> None:
        """Counts what went to pods without asking here."""
        direct = max(0, traffic.active - self._running.total())
        since = traffic.since(self._seen)
        self._seen = traffic
        self.demand.observe(self._clock.monotonic(), since.ended, since.seconds, direct)

    def _free(self) -> Endpoint | None:
        """Returns the least busy endpoint, if it takes one more request."""
        least_busy = min(self._ready(), key=self._running.__getitem__, default=None)
        if least_busy is None or (self.concurrency and self._running[least_busy] >= self.concurrency):
            return None
        return least_busy

    async def _wait(self) -> Endpoint:
        if len(self._waiting) >= self._longest:
            raise Unavailable(f"{len(self._waiting)} requests wait for {self.key} already")
        place: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._wake(self.key)
        try:
            async with asyncio.timeout(self.timeout):
                return await place
        except BaseException as error:
            was_let_go = place.done() and not place.cancelled() and place.exception() is None
            if was_let_go:  # in the moment in which it gave up
                self._running.end(place.result())
            elif place in self._waiting:
                self._waiting.remove(place)
            self.advance()
            if isinstance(error, TimeoutError):
                reason = f"no pod of {self.key} took the request within {self.timeout:g} s"
                raise Unavailable(reason, has_waited=True) from None
            raise


class Activator:
    """The lines of all Revisions in a cache, and of others who may have no pods."""

    def __init__(self, cache: Cache, gateway: Gateway, clock: Clock) -> None:
        self._lines: dict[Target, Line] = {}
        self._closed: dict[Target, list[Line]] = {}  # in which somebody still waits
        self._gateway = gateway
        self._clock = clock
        self._looking: asyncio.Task[None] | None = None
        self.wake: Callable[[Key], None] = lambda key: None
        cache.declare("activator", Read(REVISIONS))
        cache.subscribe(REVISIONS, self._revision_changed, before=False)
        gateway.processor.line_of = self.line
        gateway.backends.is_limited = self._is_limited
        gateway.backends.comes_back = self._lines.__contains__
        gateway.publisher.on_endpoints = self._endpoints_changed

    def line(self, target: Target) -> Line | None:
        """Returns where requests line up; None for those for whom none was opened."""
        return self._lines.get(target)

    async def start(self) -> None:
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        await cancel(self._looking)

    async def _look(self) -> None:
        """Looks at what goes to pods directly, for ever."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            if self._lines:
                self._observe(await self._gateway.traffic())

    def _observe(self, traffic: Mapping[Key, Traffic]) -> None:
        for target, line in self._lines.items():
            line.observe(Traffic() if target.pool else traffic.get(target.key, Traffic()))
            line.advance()

    def _is_limited(self, key: Key) -> bool:
        line = self._lines.get(Target(key))
        return line is not None and line.is_limited

    def _revision_changed(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            self.close_line(Target(Key.of(before or {"metadata": {}})))
            return
        key = Key.of(after)
        line = self._lines.get(Target(key)) or self.open_line(key, PORT, lambda key: self.wake(key))
        line.update(after)

    def open_line(self, service: Key, port: int, wake: Callable[[Key], None]) -> Line:
        """Has requests for a Service wait while it has no endpoints at this port; `wake` is called when one does."""
        cluster = service_cluster(service, port)
        ready = lambda: self._gateway.backends.members(cluster).ready  # noqa: E731
        return self._add(Target(service), ready, wake)

    def open_pool(self, pool: Target, wake: Callable[[Key], None]) -> Line:
        """Has requests for an InferencePool wait while it has no members; `wake` is called when one does."""
        return self._add(pool, lambda: self._gateway.pools.endpoints(pool), wake)

    def _add(self, target: Target, ready: Callable[[], Sequence[Endpoint]], wake: Callable[[Key], None]) -> Line:
        self._lines[target] = Line(target.key, ready, self._clock, wake)
        self._gateway.target_changed(target)
        return self._lines[target]

    def close_line(self, target: Target) -> None:
        """Lets nobody line up any more. Those who wait go on waiting for as long as there is what they wait for."""
        line = self._lines.pop(target, None)
        if line is not None:
            self._gateway.target_changed(target)
            self._closed.setdefault(target, []).append(line)
            self._let_go(target)

    def _endpoints_changed(self, targets: Collection[Target]) -> None:
        for target in targets:
            if line := self._lines.get(target):
                line.endpoints_changed()
            if target in self._closed:
                self._let_go(target)

    def _let_go(self, target: Target) -> None:
        """Lets those go on who wait in closed lines: to a pod, or away if there will be none."""
        for line in self._closed.pop(target):
            line.advance()
            if not self._gateway.backends.has(target):
                line.give_up(f"{line.key} was deleted while the request waited for a pod")
            elif line.has_waiting:
                self._closed.setdefault(target, []).append(line)
