"""A real Envoy, one for all tests, in front of servers that a test starts; each test has objects of its own."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from tests.ports import free_port

from isvc.kube.objects import Key, Object, name_of
from isvc.kube.resource import ENDPOINT_SLICES, SERVICE_NAME_LABEL, SERVICES
from isvc.local.gateway.endpoints.services import SERVICE_OF_SLICE
from isvc.local.gateway.envoy.bootstrap import Front, Limits, Settings
from isvc.local.gateway.gateway import Gateway
from isvc.local.gateway.routes.http_routes import Refuse
from isvc.local.gateway.routes.rules import Target
from isvc.local.gateway.watching import READS
from isvc.local.node.processes.process import Reaper
from isvc.toolkit.cache.memory import MemoryReader


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Envoy is of one loop, so all tests run on that."""
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here) and inspect.iscoroutinefunction(getattr(item, "obj", None)):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


class Cluster(MemoryReader):
    """Services, slices and routes that a test may change as it goes; Envoy knows of a change when it is made."""

    def __init__(self) -> None:
        super().__init__(reads=READS)
        self.gateway: Gateway
        self.session: aiohttp.ClientSession
        self.port = 0
        self.pods_port = 0
        self.log: Path
        self.routes: list[tuple[str, Key]] = []

    async def service(self, name: str, *endpoints: tuple[int, bool], **port: object) -> None:
        place = {"namespace": "default"}
        ports = [{"port": 80, "name": "http", **port}]
        self.put(SERVICES, {"metadata": {"name": name, **place}, "spec": {"ports": ports}})
        for before in self.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, f"default/{name}"):
            self.remove(ENDPOINT_SLICES, name_of(before), "default")
        for number, (local, ready) in enumerate(endpoints):
            labels = {SERVICE_NAME_LABEL: name}
            endpoint_slice = {
                "metadata": {"name": f"{name}-{number}", "labels": labels, **place},
                "ports": [{"name": "http", "port": local}],
                "endpoints": [{"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}],
            }
            self.put(ENDPOINT_SLICES, endpoint_slice)
        self.gateway.backends.mark_changed(Target(Key("default", name)))
        await self.published()

    async def route(self, host: str, *backends: tuple[str, int], **rule) -> None:
        refs = [{"name": name, "port": 80, "weight": weight} for name, weight in backends]
        await self.http_route([host], [{"backendRefs": refs, **rule}])

    async def http_route(self, hosts: list[str], rules: list[Object], name: str = "r") -> None:
        self.put_http_route(hosts, rules, name)
        await self.published()

    def put_http_route(self, hosts: list[str], rules: list[Object], name: str = "r", *refused: Refuse) -> None:
        key = Key("default", name)
        route = {"metadata": {"name": name, "namespace": "default"}, "spec": {"rules": rules}}
        self.gateway.table.put_http_route(key, route, hosts, *refused)
        self.routes.append(("HTTPRoute", key))

    async def virtual_service(self, obj: Object) -> None:
        key = Key.of(obj)
        self.gateway.table.put_virtual_service(key, obj)
        self.routes.append(("VirtualService", key))
        await self.published()

    async def published(self) -> None:
        self.gateway.publisher.mark_changed()
        await self.gateway.publisher.wait_until_published()

    async def clear(self) -> None:
        for kind, key in self.routes:
            if kind == "HTTPRoute":
                self.gateway.table.put_http_route(key, None, ())
            else:
                self.gateway.table.put_virtual_service(key, None)
        self.routes.clear()
        for resource in (SERVICES, ENDPOINT_SLICES):
            for key in self.all_keys(resource):
                self.remove(resource, key.name, key.namespace)
                self.gateway.backends.mark_changed(Target(key))
        self.gateway.processor.line_of = lambda target: None
        await self.published()


@pytest_asyncio.fixture(loop_scope="session")
async def sites() -> AsyncIterator[object]:
    async with running_sites() as serve:
        yield serve


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    front = Front(("http://allowed.test",), limits=Limits(close=0.02))
    async with running_gateway(tmp_path_factory.mktemp("envoy"), front) as cluster:
        yield cluster


@pytest_asyncio.fixture(loop_scope="session")
async def gateway(shared: Cluster) -> AsyncIterator[Cluster]:
    url = f"http://127.0.0.1:{shared.port}"
    async with aiohttp.ClientSession(base_url=url, headers={"Host": "h.test"}) as shared.session:
        yield shared
    await shared.clear()


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
        for runner in reversed(runners):
            await runner.cleanup()


async def nobody_knows(host: str, path: str, *, has_waited: bool = False) -> None:
    return None


@asynccontextmanager
async def running_gateway(folder: Path, front: Front, **asked) -> AsyncIterator[Cluster]:
    cluster = Cluster()
    certificates = asked.pop("certificates", None)
    cluster.log = folder / "envoy.log"
    reaper = Reaper(folder / "processes")
    reaper.start()
    cluster.port, cluster.pods_port = free_port(), free_port()
    cluster.gateway = Gateway(
        cluster,
        Settings(cluster.port, cluster.pods_port, front=front, **asked),
        folder=folder / "run",
        log_file=cluster.log,
        reaper=reaper,
        why_unready=nobody_knows,
        certificates=certificates,
    )
    try:
        await cluster.gateway.start()
        await cluster.gateway.wait_until_live()
        yield cluster
    finally:
        await cluster.gateway.close()
        reaper.stop()
