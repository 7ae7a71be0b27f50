"""/healthz, /readyz and /metrics: what the kubelet and Prometheus ask for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from isvc.toolkit.address import Address
from isvc.toolkit.failure import ClusterError

if TYPE_CHECKING:
    from aiohttp import web

Check = Callable[[], bool]


class Probes:
    """Small HTTP servers; paths with a check answer 200 `ok` or 500, others a text."""

    def __init__(self) -> None:
        self._runners: list[web.AppRunner] = []

    async def serve(
        self,
        address: Address,
        *,
        checks: dict[str, Check] | None = None,
        texts: dict[str, Callable[[], bytes]] | None = None,
    ) -> None:
        from aiohttp import web

        def check_page(check: Check) -> web.Response:
            return web.Response(text="ok") if check() else web.Response(status=500, text="not ready")

        app = web.Application()
        for path, check in (checks or {}).items():

            async def answer(_: web.Request, check: Check = check) -> web.Response:
                return check_page(check)

            app.router.add_get(path, answer)
        for path, text in (texts or {}).items():

            async def show(_: web.Request, text: Callable[[], bytes] = text) -> web.Response:
                return web.Response(body=text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

            app.router.add_get(path, show)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1)
        await runner.setup()
        self._runners.append(runner)
        try:
            await web.TCPSite(runner, address.host or None, address.port).start()
        except OSError as error:
            place = f"port {address.port}" + (f" of {address.host}" if address.host else "")
            raise ClusterError(f"cannot listen on {place}: {error.strerror}") from None

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()
        self._runners.clear()
