"""The logs of a service over HTTP: what its containers have said, and what they say from now on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web

from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import Views
from isvc.dashboard.pages.addressed import SERVICE, addressed_service
from isvc.dashboard.pages.live import Event, stream
from isvc.dashboard.pages.rendering import render, respond
from isvc.dashboard.pages.service import page_of
from isvc.dashboard.views.rows import Place
from isvc.insight.operations.logs import Stream, lines, started_streams
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, namespace_of
from isvc.kube.resource import PODS, Resource
from isvc.kube.timestamps import timestamp
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.tasks import cancel

TAIL: Final = 100  # lines of each container to begin with
MOST_WAITING: Final = 1000  # lines that a slow reader may be behind
LONGEST: Final = 4000  # characters of a line
MOST_ON_PAGE, LONGEST_ON_PAGE = 200, 400  # for readers without scripts
TOGETHER: Final = 0.2  # seconds in which several lines become one event


@dataclass(frozen=True, slots=True)
class Line:
    pod: str
    container: str
    component: str
    text: str


class LogPages:
    def __init__(self, views: Views) -> None:
        self._views = views

    def routes(self) -> list[web.RouteDef]:
        return [web.get(SERVICE + "/logs", self._logs), web.get(SERVICE + "/logs/live", self._live)]

    async def _logs(self, request: web.Request) -> web.Response:
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            followed = _streams(view, service)
            tail = max(1, min(TAIL, MOST_ON_PAGE // (len(followed) or 1)))
            tails = await asyncio.gather(*(_tail(view, service, each, tail) for each in followed[-MOST_ON_PAGE:]))
            found = [replace(line, text=line.text[:LONGEST_ON_PAGE]) for lines in tails for line in lines]
            return respond(request, page_of(view, resource, service, "logs.html", found))

    async def _live(self, request: web.Request) -> web.StreamResponse:
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            follower = Follower(view, resource, service, request.headers.get("Last-Event-ID", ""))
            try:
                return await stream(request, follower.events())
            finally:
                await follower.close()


class Follower:
    """Follows all containers of a service, those of new pods as well."""

    def __init__(self, view: ClusterView, resource: Resource, service: Object, since: str) -> None:
        """`since` is the time up to which the reader has seen lines, where there is one."""
        self._view, self._service, self._since = view, service, since
        self._place = Place.of(resource, service)
        self._lines: asyncio.Queue[Line | None] = asyncio.Queue(MOST_WAITING)  # None when the service is deleted
        self._tasks: dict[Stream, asyncio.Task[None]] = {}

    async def events(self) -> AsyncGenerator[Event, None]:
        watching = asyncio.create_task(self._watch_pods())
        self._tasks[Stream("", "", 0, "")] = watching
        while True:
            together = [await self._lines.get()]
            await self._view.clock.sleep(TOGETHER)
            while not self._lines.empty():
                together.append(self._lines.get_nowait())
            now = timestamp(self._view.clock.now())
            yield Event("lines", render("log_lines.html", lines=filter(None, together)), now)
            if None in together:
                yield Event("lines", render("gone.html"))
                yield Event("gone", "")
                return

    async def close(self) -> None:
        await cancel(*self._tasks.values())

    async def _watch_pods(self) -> None:
        changes = self._view.changes_in(namespace_of(self._service))
        first = True
        while self._view.service(self._place) is not None:
            count = changes.count
            for each in _streams(self._view, self._service):
                if each not in self._tasks:
                    self._tasks[each] = asyncio.create_task(self._follow(each, TAIL if first else -1))
            first = False
            await changes.since(count)
        await self._lines.put(None)

    async def _follow(self, each: Stream, tail: int) -> None:
        followed = lines(
            self._view.client, namespace_of(self._service), each, tail=tail, follow=True, since=self._since
        )
        try:
            async with aclosing(followed):
                async for text in followed:
                    await self._lines.put(_line(each, text))
        except (ApiError, ClusterError) as error:
            await self._lines.put(_line(each, f"no log: {error}"))


def _streams(view: ClusterView, service: Object) -> list[Stream]:
    return started_streams(service, view.cache.list(PODS, namespace_of(service)))


async def _tail(view: ClusterView, service: Object, each: Stream, tail: int) -> list[Line]:
    try:
        found = lines(view.client, namespace_of(service), each, tail=tail, follow=False)
        return [_line(each, text) async for text in found]
    except (ApiError, ClusterError) as error:
        return [_line(each, f"no log: {error}")]


def _line(each: Stream, text: str) -> Line:
    return Line(each.pod, each.container, each.component, text[:LONGEST])
