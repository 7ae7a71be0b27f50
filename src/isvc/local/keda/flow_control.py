"""Requests for LLMs that sleep: the gateway stands in for their endpoint picker, and so it has the picker's queue."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from isvc.kube.objects import Key, Object
from isvc.local.gateway.endpoints.pools import POOLS_BY_GROUP
from isvc.local.gateway.routes.rules import Target
from isvc.local.keda.triggers import queue_triggers
from isvc.local.knative.activator import Activator
from isvc.serving.thirdparty import SCALED_OBJECTS
from isvc.serving.workload.http_metric import COLD_START_SECONDS
from isvc.toolkit.cache import Cache


class FlowControl:
    """The queues of all InferencePools for which a ScaledObject asks. `wake` is called with its key for one who waits.

    A picker on a cluster has a queue because its configuration says so, which comes from the same annotation.
    """

    def __init__(self, cache: Cache, activator: Activator) -> None:
        self._activator = activator
        self._asking: defaultdict[Key, set[Key]] = defaultdict(set)
        self.wake: Callable[[Key], None] = lambda scaled: None
        cache.subscribe(SCALED_OBJECTS, self._scaled_object_changed)

    def value(self, pool: Key) -> float:
        """Returns the requests that wait or run."""
        return sum(line.under_way() for target in _targets(pool) if (line := self._activator.line(target)))

    def idle_seconds(self, pool: Key) -> float | None:
        """Returns how long ago a request last waited or ran; None if none ever did."""
        lines = [line for target in _targets(pool) if (line := self._activator.line(target))]
        return min((idle for line in lines if (idle := line.idle_seconds()) is not None), default=None)

    def _scaled_object_changed(self, before: Object | None, after: Object | None) -> None:
        """Keeps requests in line as long as one ScaledObject asks for a pool: prefill and decode have one each."""
        was = {queue.pool for queue in queue_triggers(before or {})}
        now = {queue.pool for queue in queue_triggers(after or {})}
        scaled = Key.of(after or before or {"metadata": {}})
        for pool in now - was:
            if not self._asking[pool]:
                self._open(pool)
            self._asking[pool].add(scaled)
        for pool in was - now:
            self._asking[pool].discard(scaled)
            if not self._asking[pool]:
                self._close(pool)

    def _open(self, pool: Key) -> None:
        for target in _targets(pool):
            self._activator.open_pool(target, self._wake).timeout = COLD_START_SECONDS

    def _close(self, pool: Key) -> None:
        del self._asking[pool]
        for target in _targets(pool):
            self._activator.close_line(target)

    def _wake(self, pool: Key) -> None:
        for scaled in self._asking.get(pool, ()):
            self.wake(scaled)


def _targets(pool: Key) -> list[Target]:
    """Returns the pool in both of its groups: a route leads to one of them."""
    return [Target(pool, resource) for resource in POOLS_BY_GROUP.values()]
