"""A gateway over real sockets, in front of servers that a test starts."""

from __future__ import annotations

from contextlib import asynccontextmanager

import aiohttp
import pytest_asyncio
from aiohttp import web

from isvc.kube.objects import name_of
from isvc.kube.resource import ENDPOINT_SLICES, SERVICE_NAME_LABEL, SERVICES
from isvc.local.gateway.endpoints.backends import SERVICE_OF_SLICE, Backends
from isvc.local.gateway.guard import Guard
from isvc.local.gateway.listener import Listener
from isvc.local.gateway.proxy import Proxy
from isvc.local.gateway.routes.table import RouteTable
from isvc.local.gateway.server import READS
from isvc.toolkit.memory import MemoryReader


class Cluster(MemoryReader):
    """Services, slices and a route that a test may change as it goes."""

    def __init__(self) -> None:
        super().__init__(reads=READS)
        self.table = RouteTable()
        self.guard = Guard(frozenset(["http://allowed.test"]))
        self.backends = Backends(self)
        self.port = 0
        self.session: aiohttp.ClientSession
        self.proxy: Proxy

    def service(self, name: str, *endpoints: tuple[int, bool]) -> None:
        place = {"namespace": "default"}
        ports = [{"port": 80, "name": "http"}]
        self.put(SERVICES, {"metadata": {"name": name, **place}, "spec": {"ports": ports}})
        for before in self.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, f"default/{name}"):
            self.remove(ENDPOINT_SLICES, name_of(before), "default")
        for number, (port, ready) in enumerate(endpoints):
            labels = {SERVICE_NAME_LABEL: name}
            endpoint_slice = {
                "metadata": {"name": f"{name}-{number}", "labels": labels, **place},
                "ports": [{"name": "http", "port": port}],
                "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
            }
            self.put(ENDPOINT_SLICES, endpoint_slice)

    def speaks_http2(self, name: str) -> None:
        """A Service says so of its port."""
        service = self.get(SERVICES, name, "default")
        assert service is not None
        port = {"port": 80, "name": "http", "appProtocol": "kubernetes.io/h2c"}
        self.put(SERVICES, {**service, "spec": {"ports": [port]}})

    def route(self, host: str, *backends: tuple[str, int], **rule) -> None:
        refs = [{"name": name, "port": 80, "weight": weight} for name, weight in backends]
        route = {
            "metadata": {"name": "r", "namespace": "default"},
            "spec": {"hostnames": [host], "rules": [{"backendRefs": refs, **rule}]},
        }
        self.table = RouteTable.build([], [(route, [host])])


@pytest_asyncio.fixture
async def sites():
    async with running_sites() as serve:
        yield serve


@pytest_asyncio.fixture
async def gateway(sites):
    async with running_gateway(sites) as cluster:
        yield cluster


@asynccontextmanager
async def running_sites():
    """Starts low-level servers; answers their ports; stops them at the end."""
    runners = []

    async def serve(handler) -> int:
        server = handler if isinstance(handler, web.Server) else web.Server(handler, handler_cancellation=True)
        runner = web.ServerRunner(server, shutdown_timeout=1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        runners.append(runner)
        return site.port

    try:
        yield serve
    finally:
        await _clean_up(runners)


async def _clean_up(runners):
    for runner in reversed(runners):
        await runner.cleanup()


@asynccontextmanager
async def running_gateway(sites):
    cluster = Cluster()
    proxy = Proxy(lambda: cluster.table, cluster.backends, cluster.guard)
    cluster.proxy = proxy
    listener = Listener(proxy)
    cluster.port = await listener.listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{cluster.port}"
    cluster.session = aiohttp.ClientSession(base_url=url, headers={"Host": "h.test"})
    yield cluster
    await cluster.session.close()
    await listener.close()
    await proxy.close()
