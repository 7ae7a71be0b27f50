"""What keeps services from being ready, for the gateway's answers and the lines of `isvc up`.

It is the diagnosis that `isvc explain` prints. Clients that try again and again do not cause one each: what was found
is kept for a moment.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from isvc.insight.diagnosis.gather import examine
from isvc.insight.diagnosis.sentence import state
from isvc.insight.diagnosis.snapshot import of_service, reads
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, resource_version_of, uid_of
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock
from isvc.toolkit.failure import ClusterError
from isvc.wire.bounded import Bounded
from isvc.wire.turns import room_in_turn

FRESH: Final = 2.0  # seconds
WITHIN: Final = 5.0  # seconds, after which the status has to do
_MOST_KEPT: Final = 1000


class _Found(NamedTuple):
    version: str
    at: float
    text: asyncio.Task[str]


class Causes:
    def __init__(self, client: Client, cache: Cache, clock: Clock) -> None:
        self._client, self._cache, self._clock = client, cache, clock
        cache.declare("causes", *reads())
        self._found: Bounded[str, _Found] = Bounded(_MOST_KEPT)

    async def state_of(self, service: Object) -> str:
        """Returns one sentence without its subject: `is not ready: …`, `is starting: …`."""
        now, version = self._clock.monotonic(), resource_version_of(service)
        found = self._found.get(uid_of(service))
        if found is None or found.version != version or now - found.at > FRESH:
            found = _Found(version, now, asyncio.create_task(self._look(service)))
            self._found[uid_of(service)] = found
        return await asyncio.shield(found.text)

    async def _look(self, service: Object) -> str:
        try:
            async with asyncio.timeout(WITHIN):
                await room_in_turn()
                snapshot = of_service(self._cache, service)
                await asyncio.sleep(0)  # reading and planning take milliseconds each
                return state(service, await examine(self._client, service, snapshot))
        except (ApiError, ClusterError, TimeoutError):
            return state(service, ())
