"""Reads objects that have no informer, at most once per interval.

For objects that are needed too rarely, or are too many, to watch: a setting of another project, say.
"""

from __future__ import annotations

from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock


class PolledReads:
    def __init__(self, client: Client, clock: Clock, seconds: float = 30, absent: float = 30) -> None:
        """`absent` says for how long it is remembered that something does not exist."""
        self._client = client
        self._clock = clock
        self._seconds = seconds
        self._absent = absent
        self._read: dict[tuple[Resource, Key], tuple[float, Object | None]] = {}  # valid until, object

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Returns the object as it was at most one interval ago; None if it did not exist."""
        place = resource, Key(namespace, name)
        known = self._read.get(place)
        if known is not None and self._clock.monotonic() < known[0]:
            return known[1]
        try:
            found: Object | None = await self._client.get(resource, name, namespace)
        except NotFound:
            found = None
        self._read[place] = self._clock.monotonic() + (self._seconds if found else self._absent), found
        return found
