"""Serves /healthz, /readyz and /metrics to the kubelet and to Prometheus."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isvc.toolkit.access import Access
from isvc.toolkit.address import Address
from isvc.toolkit.failure import ClusterError

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.typedefs import Middleware

    Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

Check = Callable[[], bool]
Text = Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class Protection:
    """Served over TLS, to those whom the API server lets read the path."""

    tls: ssl.SSLContext
    access: Access


class Probes:
    """Small HTTP servers; paths with a check answer 200 `ok` or 500, others a text."""

    def __init__(self) -> None:
        self._runners: list[web.AppRunner] = []

    async def serve(
        self,
        address: Address,
        *,
        checks: Mapping[str, Check] | None = None,
        texts: Mapping[str, Text] | None = None,
        protection: Protection | None = None,
    ) -> None:
        from aiohttp import web

        app = web.Application(middlewares=[_guard(protection.access)] if protection else [])
        for path, check in (checks or {}).items():
            app.router.add_get(path, _checked(check))
        for path, text in (texts or {}).items():
            app.router.add_get(path, _shown(text))
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
        await runner.setup()
        self._runners.append(runner)
        tls = protection.tls if protection else None
        try:
            await web.TCPSite(runner, address.host or None, address.port, ssl_context=tls).start()
        except OSError as error:
            place = f"port {address.port}" + (f" of {address.host}" if address.host else "")
            raise ClusterError(f"cannot listen on {place}: {error.strerror}") from None

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()


def _checked(check: Check) -> Answer:
    from aiohttp import web

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="ok") if check() else web.Response(status=500, text="not ready")

    return answer


def _shown(text: Text) -> Answer:
    from aiohttp import web

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    return answer


def _guard(access: Access) -> Middleware:
    from aiohttp import web

    @web.middleware
    async def guard(request: web.Request, handler: Answer) -> web.StreamResponse:
        refusal = await access.refusal(request.method, request.path, request.headers.get("Authorization", ""))
        return await handler(request) if refusal is None else web.Response(status=refusal.status, text=refusal.message)

    return guard
