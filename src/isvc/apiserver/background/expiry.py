"""Events are forgotten an hour after they were last written, as in any cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from isvc.apiserver.background.actor import Actor
from isvc.apiserver.store.entry import DELETED, Event
from isvc.apiserver.verbs.pipeline import Api

COLLECTION = "events"
LIFETIME_SECONDS = 3600.0
SWEEP_SECONDS = 60.0


class EventExpiry:
    def __init__(self, api: Api, clock: Callable[[], float] | None = None) -> None:
        """`clock` counts seconds from anywhere."""
        self._store = api.store
        self._actor = Actor(api, "event-expiry")
        self._clock = clock or asyncio.get_running_loop().time
        # Oldest write first. After a restart every event gets a full life again.
        self._written: dict[tuple[str, str], float] = {}
        for entry in self._store.list(COLLECTION):
            self._written[entry.namespace, entry.name] = self._clock()
        self._unsubscribe = self._store.subscribe(COLLECTION, self._on_event)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        self._unsubscribe()
        if self._task:
            self._task.cancel()

    def _on_event(self, event: Event) -> None:
        key = (event.entry.namespace, event.entry.name)
        self._written.pop(key, None)
        if event.type != DELETED:
            self._written[key] = self._clock()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            await self.sweep()

    async def sweep(self) -> None:
        oldest = self._clock() - LIFETIME_SECONDS
        for key, written in tuple(self._written.items()):
            if written > oldest:
                return
            entry = self._store.get(COLLECTION, *key)
            if entry:
                await self._actor.delete(entry, entry.parse()["metadata"]["uid"])
            self._written.pop(key, None)
