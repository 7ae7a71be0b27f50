"""Base of background workers: follows every event, and works through a queue of what it noticed, one item at a time."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable

from isvc.apiserver.background.actor import Actor
from isvc.apiserver.store.entry import Event
from isvc.apiserver.verbs.pipeline import Api

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0


class Worker:
    """A queue of things to look at, each looked at again after a failure; one at a time, no duplicates."""

    def __init__(self, name: str, work: Callable[[str], Awaitable[None]]) -> None:
        self._name = name
        self._work = work
        self._due: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, item: str) -> None:
        self._due[item] = None
        self._wake.set()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def stop(self) -> None:
        if self._task:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            while self._due:
                item = next(iter(self._due))
                del self._due[item]
                try:
                    await self._work(item)
                except Exception:
                    log.warning("%s: %s failed, trying again", self._name, item, exc_info=True)
                    asyncio.get_running_loop().call_later(RETRY_SECONDS, self.add, item)
            self._wake.clear()
            await self._wake.wait()


class Follower(ABC):
    """Sees every event; whatever it gives to its worker comes back to `work`."""

    def __init__(self, api: Api, name: str) -> None:
        self._store = api.store
        self._actor = Actor(api, name)
        self._worker = Worker(name, self.work)
        self._unsubscribe = api.store.subscribe("", self.on_event)

    @abstractmethod
    def on_event(self, event: Event) -> None: ...

    @abstractmethod
    async def work(self, item: str) -> None: ...

    def start(self) -> None:
        self._worker.start()

    def stop(self) -> None:
        self._unsubscribe()
        self._worker.stop()
