"""The dashboard over HTTP: routes, and what stands in front of all of them."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web

from isvc.dashboard import guard
from isvc.dashboard.cluster.views_in_use import Views
from isvc.dashboard.entrance import Entrance
from isvc.dashboard.pages.edit import EditPages
from isvc.dashboard.pages.logs import LogPages
from isvc.dashboard.pages.metrics import MetricsPages
from isvc.dashboard.pages.overview import OverviewPage
from isvc.dashboard.pages.rendering import CSRF, EDITS, Page, load_templates, render, respond
from isvc.dashboard.pages.service import ServicePages
from isvc.dashboard.pages.try_it import TryPages
from isvc.dashboard.sign_in import Sessions, SignIn
from isvc.insight.operations import NotPossible
from isvc.kube.errors import ApiError
from isvc.toolkit.failure import ClusterError

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_IDLE_SECONDS: Final = 75.0  # how long a client may take to send a request's headers
STATIC: Final = Path(__file__).parent / "static"
_ASSETS: Final = {path.name: path for path in STATIC.iterdir()}
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Dashboard:
    def __init__(
        self, entrance: Entrance, views: Views, sign_in: SignIn, sessions: Sessions, *, allow_edit: bool
    ) -> None:
        self._entrance, self._allow_edit = entrance, allow_edit
        self._views = views
        self._sign_in, self._sessions = sign_in, sessions
        self._runner: web.AppRunner | None = None
        self._loading: asyncio.Task[None] | None = None

    @property
    def link(self) -> str:
        return self._sign_in.link(self._entrance)

    async def start(self, sockets: Iterable[socket.socket]) -> None:
        self._loading = asyncio.create_task(asyncio.to_thread(load_templates), name="templates")
        self._runner = web.AppRunner(
            self._application(), access_log=None, shutdown_timeout=1, keepalive_timeout=_IDLE_SECONDS
        )
        await self._runner.setup()
        for each in sockets:
            await web.SockSite(self._runner, each, ssl_context=self._entrance.tls).start()

    async def close(self) -> None:
        if self._loading is not None:
            await self._loading
        if self._runner is not None:
            await self._runner.cleanup()
        await self._views.close()

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard, _explain_failures, self._require_sign_in])
        app.add_routes([web.get("/static/{name}", _asset)])
        for pages in (OverviewPage, ServicePages, LogPages, TryPages, MetricsPages):
            app.add_routes(pages(self._views).routes())
        if self._allow_edit:
            app.add_routes(EditPages(self._views).routes())
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        only_loopback = self._entrance.is_for_this_machine
        said = guard.refusal(request.method, request.headers, only_loopback=only_loopback)
        response = web.Response(status=HTTPStatus.FORBIDDEN, text=said) if said else await handler(request)
        if not response.prepared:
            response.headers.update({name: v for name, v in guard.HEADERS.items() if name not in response.headers})
        return response

    @web.middleware
    async def _require_sign_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/static/"):
            return await handler(request)
        if (instead := await self._sign_in.admit(request)) is not None:
            return instead
        request[CSRF], request[EDITS] = self._sessions.csrf(request), self._allow_edit
        if request.method == "POST" and not await self._sessions.is_own_form(request):
            return _problem(request, HTTPStatus.FORBIDDEN, "this form is not one of this dashboard; reload it")
        return await handler(request)


async def _asset(request: web.Request) -> web.StreamResponse:
    path = _ASSETS.get(request.match_info["name"])
    if path is None or path.suffix not in _TYPES:
        raise web.HTTPNotFound
    cached = {"Cache-Control": "max-age=3600", "Content-Type": f"{_TYPES[path.suffix]}; charset=utf-8"}
    return web.FileResponse(path, headers={**guard.HEADERS, **cached})


@web.middleware
async def _explain_failures(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turns what goes wrong into a page that says so in one sentence."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        return _problem(request, HTTPStatus(error.status), HTTPStatus(error.status).description)
    except NotPossible as error:
        return _problem(request, HTTPStatus.BAD_REQUEST, str(error))
    except ApiError as error:
        return _problem(request, HTTPStatus(error.code), error.message)
    except ClusterError as error:
        return _problem(request, HTTPStatus.BAD_GATEWAY, str(error))
    except Exception:
        log.exception("%s %s", request.method, request.path)
        return _problem(request, HTTPStatus.INTERNAL_SERVER_ERROR, "this is a bug; the log has the details")


def _problem(request: web.Request, status: HTTPStatus, message: str) -> web.Response:
    if "HX-Request" in request.headers:  # it becomes a part of a page
        text = render("failure.html", message=message)
        return web.Response(text=text, status=status, content_type="text/html")
    shown = {"status": status.value, "message": message}
    return respond(request, Page("problem.html", status.phrase, shown, status.value))
