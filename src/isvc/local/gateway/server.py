"""The gateway as a part that starts and stops: its port, its route table kept current, its backends."""

from __future__ import annotations

import contextlib
import logging
from typing import Final

from aiohttp import web

from isvc.kube.objects import Object
from isvc.kube.resource import ENDPOINT_SLICES, INGRESSES, SERVICES, Resource
from isvc.local.gateway.backends import READY_IN_SLICE, SERVICE_OF_SLICE, Backends, ready_in_slice, service_of_slice
from isvc.local.gateway.guard import Guard
from isvc.local.gateway.proxy import Proxy
from isvc.local.gateway.routes import RouteTable
from isvc.toolkit.cache import Cache
from isvc.toolkit.reads import Read

log = logging.getLogger("isvc.gateway")

HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")


READS: Final = (
    Read(INGRESSES),
    Read(HTTP_ROUTES, optional=True),
    Read(SERVICES),
    Read(ENDPOINT_SLICES, indexers={SERVICE_OF_SLICE: service_of_slice, READY_IN_SLICE: ready_in_slice}),
)


class Gateway:
    """Routes of a cache, served on a port. Compiling the table waits until the next request after a change."""

    def __init__(self, cache: Cache, guard: Guard) -> None:
        self._cache = cache
        self._table: RouteTable | None = None
        self.backends = Backends(cache)
        self._proxy = Proxy(self.table, self.backends, guard)
        self._runner: web.ServerRunner | None = None
        cache.declare("gateway", *READS)
        cache.subscribe(ENDPOINT_SLICES, lambda old, new: self.backends.changed(), before=False)
        for resource in (INGRESSES, HTTP_ROUTES):
            cache.subscribe(resource, self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        self._table = None

    def table(self) -> RouteTable:
        if self._table is None:
            routes = self._cache.list(HTTP_ROUTES) if self._cache.serves(HTTP_ROUTES) else []
            self._table = RouteTable.build(self._cache.list(INGRESSES), routes)
        return self._table

    async def start(self, host: str, port: int) -> None:
        self._runner = web.ServerRunner(self._proxy.server(), shutdown_timeout=5)
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, backlog=1024).start()
        if host == "127.0.0.1":
            with contextlib.suppress(OSError):  # `localhost` may mean either; not every machine has both
                await web.TCPSite(self._runner, "::1", port, backlog=1024).start()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._proxy.close()
