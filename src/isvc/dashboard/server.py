"""The dashboard over HTTP: routes, and what stands in front of all of them."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Final

from aiohttp import web

from isvc.dashboard import guard
from isvc.dashboard.log_pages import LogPages
from isvc.dashboard.overview_page import OverviewPage
from isvc.dashboard.pages import CSRF, Page, render, respond
from isvc.dashboard.service_pages import ServicePages
from isvc.dashboard.sign_in import LinkSignIn
from isvc.dashboard.try_pages import TryPages
from isvc.dashboard.views_in_use import ViewsInUse
from isvc.kube.errors import ApiError
from isvc.operations.failure import NotPossible
from isvc.toolkit.failure import ClusterError

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PORT: Final = 8090
STATIC: Final = Path(__file__).parent / "static"
_ASSETS: Final = {path.name: path for path in STATIC.iterdir()}
_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


class Dashboard:
    def __init__(self, views: ViewsInUse, host: str, port: int) -> None:
        self._views = views
        self._host, self._port = host, port
        self._only_loopback = guard.is_loopback(f"[{host}]" if ":" in host else host)
        self._sign_in = LinkSignIn(port)
        self._runner: web.AppRunner | None = None

    @property
    def link(self) -> str:
        return self._sign_in.link(f"http://localhost:{self._port}")

    async def start(self) -> None:
        self._runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._host, self._port).start()
        if self._host == "127.0.0.1":
            with contextlib.suppress(OSError):  # `localhost` may mean either; not every machine has both
                await web.TCPSite(self._runner, "::1", self._port).start()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._views.close()

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._guarded, self._signed_in, _explained])
        app.add_routes(
            [
                web.get("/static/{name}", _asset),
                *OverviewPage(self._views).routes(),
                *ServicePages(self._views).routes(),
                *LogPages(self._views).routes(),
                *TryPages(self._views).routes(),
            ]
        )
        return app

    # -- in front of every page -------------------------------------------------------------------------------------

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        said = guard.refusal(request.method, request.headers, only_loopback=self._only_loopback)
        response = web.Response(status=HTTPStatus.FORBIDDEN, text=said) if said else await handler(request)
        if not response.prepared:
            response.headers.update({name: v for name, v in guard.HEADERS.items() if name not in response.headers})
        return response

    @web.middleware
    async def _signed_in(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path.startswith("/static/"):
            return await handler(request)
        if self._sign_in.accepts(request):
            response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": request.path})
            self._sign_in.remember(response)
            return response
        if not self._sign_in.is_signed_in(request):
            return _problem(request, HTTPStatus.UNAUTHORIZED, "open the link that was printed at the start")
        request[CSRF] = self._sign_in.csrf(request)
        if request.method == "POST" and not await self._sign_in.is_own_form(request):
            return _problem(request, HTTPStatus.FORBIDDEN, "this form is not one of this dashboard; reload it")
        return await handler(request)


async def _asset(request: web.Request) -> web.StreamResponse:
    path = _ASSETS.get(request.match_info["name"])
    if path is None or path.suffix not in _TYPES:
        raise web.HTTPNotFound
    cached = {"Cache-Control": "max-age=3600", "Content-Type": f"{_TYPES[path.suffix]}; charset=utf-8"}
    return web.FileResponse(path, headers={**guard.HEADERS, **cached})


@web.middleware
async def _explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What goes wrong, as a page that says so in one sentence."""
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
