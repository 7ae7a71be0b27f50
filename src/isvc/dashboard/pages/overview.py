"""The overview over HTTP: services of all kinds, and what has changed about them since."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import lru_cache
from typing import Final

from aiohttp import web

from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import Views
from isvc.dashboard.pages.live import Event, stream
from isvc.dashboard.pages.rendering import Page, render, respond
from isvc.dashboard.views.overview import Overview, Question

MOST_RENDERED: Final = 20  # pieces of HTML that many readers get
COALESCE: Final = 0.25  # seconds in which several changes become one event


class OverviewPage:
    def __init__(self, views: Views) -> None:
        self._views = views

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/", self._page), web.get("/live", self._live)]

    async def _page(self, request: web.Request) -> web.Response:
        async with self._views.use(request) as view:
            shown = view.overview(Question.of(dict(request.query)))
            limits = {"forbidden": view.forbidden_kinds(), "scope": view.scope}
            around = {"digest": digest(shown), "lost_since": view.reachability.lost_since, **limits}
            return respond(request, Page("overview.html", "Services", shown, around=around))

    async def _live(self, request: web.Request) -> web.StreamResponse:
        question, seen = Question.of(dict(request.query)), request.query.get("seen", "")
        async with self._views.use(request) as view:
            return await stream(request, overview_events(view, question, seen))


async def overview_events(view: ClusterView, question: Question, seen: str) -> AsyncGenerator[Event, None]:
    """Yields single rows where they alone changed, else the list of the page, whose digest the reader has `seen`."""
    count, shown, lost = view.changes.count, view.overview(question), ""
    if digest(shown) != seen:
        yield _list(shown, lost)
    while True:
        await view.changes.since(count)
        await view.clock.sleep(COALESCE)
        count, now, before = view.changes.count, view.overview(question), lost
        lost = view.reachability.lost_since
        if [row.place for row in now.rows] != [row.place for row in shown.rows] or now.found != shown.found:
            yield _list(now, lost)
        elif (now.rows, now.counts, lost) != (shown.rows, shown.counts, before):
            yield _rows(now, shown, lost)
        shown = now


def digest(shown: Overview) -> str:
    return f"{hash((shown.rows, shown.found)) & 0xFFFFFFFFFFFF:x}"


@lru_cache(MOST_RENDERED)
def _rows(now: Overview, before: Overview, lost_since: str) -> Event:
    changed = [row for row, earlier in zip(now.rows, before.rows, strict=True) if row != earlier]
    return Event("rows", render("rows.html", shown=now, changed=changed, lost_since=lost_since))


@lru_cache(MOST_RENDERED)
def _list(shown: Overview, lost_since: str) -> Event:
    return Event("list", render("list.html", shown=shown, live=True, lost_since=lost_since))
