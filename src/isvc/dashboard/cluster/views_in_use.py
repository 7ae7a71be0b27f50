"""Opens a view of the cluster when somebody looks, or before, and closes it when nobody has looked for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, Protocol, TypeVar

from aiohttp import web

from isvc.dashboard.cluster.view import ClusterView
from isvc.toolkit.tasks import Background

IDLE: Final = 300.0  # seconds after which a view that nobody looks at is closed


class Views(Protocol):
    """The view that a request is about.

    With `asks_directly` services are asked at the addresses in their status, else through the API server alone.
    """

    asks_directly: bool

    def use(self, request: web.Request) -> AbstractAsyncContextManager[ClusterView]: ...

    async def close(self) -> None: ...


class Usable(Protocol):
    @property
    def is_unused(self) -> bool: ...


K = TypeVar("K", str, bytes)
V = TypeVar("V", bound=Usable)


class ViewInUse:
    def __init__(self, make: Callable[[], Awaitable[ClusterView]], idle: float | None = IDLE) -> None:
        """`make` gives a view that is not started; without `idle` it is kept until the end."""
        self._make = make
        self._idle = idle
        self._view: asyncio.Task[ClusterView] | None = None
        self._users = 0
        self._closing: asyncio.TimerHandle | None = None
        self._closed = Background()

    def open(self) -> asyncio.Task[ClusterView]:
        """Opens the view in the background, so that the first look does not have to wait; again after a failure."""
        if self._view is None or _has_failed(self._view):
            self._view = asyncio.create_task(self._start(), name="view of the cluster")
        return self._view

    @asynccontextmanager
    async def use(self) -> AsyncIterator[ClusterView]:
        """Yields the view, which stays open for as long as it is used."""
        if self._closing is not None:
            self._closing.cancel()
        self._users += 1
        try:
            yield await asyncio.shield(self.open())
        finally:
            self._users -= 1
            if not self._users and self._idle is not None:
                self._closing = asyncio.get_running_loop().call_later(self._idle, self._close_unused)

    @property
    def is_unused(self) -> bool:
        return not self._users

    async def close(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
        self._close_unused()
        await asyncio.gather(*self._closed, return_exceptions=True)

    async def _start(self) -> ClusterView:
        view = await self._make()
        try:
            await view.start()
        except BaseException:
            await view.close()
            raise
        return view

    def _close_unused(self) -> None:
        if self._view is not None:
            self._closed.start(_close(self._view))
            self._view = None


def pop_unused(views: dict[K, V], most: int) -> Iterator[V]:
    """Takes out views that nobody uses, those of the longest ago first, until no more than `most` are left."""
    while len(views) > most and (unused := next((key for key, view in views.items() if view.is_unused), None)):
        yield views.pop(unused)


def _has_failed(opening: asyncio.Task[ClusterView]) -> bool:
    return opening.done() and (opening.cancelled() or opening.exception() is not None)


async def _close(opening: asyncio.Task[ClusterView]) -> None:
    opening.cancel()
    view = (await asyncio.gather(opening, return_exceptions=True))[0]
    if isinstance(view, ClusterView):
        await view.close()
