"""Objects that are read now and then and belong to somebody else: asked for once, then remembered for a while.

For what is too rarely needed, or in too many hands, to keep an informer for: a setting of another project, say.
"""

from __future__ import annotations

from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock


class Remembered:
    def __init__(self, client: Client, clock: Clock, seconds: float = 30) -> None:
        self._client = client
        self._clock = clock
        self._seconds = seconds
        self._known: dict[tuple[Resource, Key], tuple[float, Object | None]] = {}

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """The object as it was at most so many seconds ago; None if it does not exist."""
        place = resource, Key(namespace, name)
        known = self._known.get(place)
        if known is not None and self._clock.monotonic() < known[0]:
            return known[1]
        try:
            found: Object | None = await self._client.get(resource, name, namespace)
        except NotFound:
            found = None
        self._known[place] = self._clock.monotonic() + self._seconds, found
        return found
