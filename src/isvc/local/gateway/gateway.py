"""The gateway as a part that starts and stops: Envoy, its configuration, and what it asks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.request import getproxies

from grpclib.config import Configuration
from grpclib.server import Server

from isvc.kube.objects import Key
from isvc.kube.resource import ENDPOINT_SLICES
from isvc.local.gateway import metrics
from isvc.local.gateway.admin import Admin
from isvc.local.gateway.backends import Backends
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.endpoints.services import READY_IN_SLICE
from isvc.local.gateway.envoy import outside
from isvc.local.gateway.envoy.bootstrap import ADMIN_SOCKET, OWN_SOCKET, TERMINAL, Settings, bootstrap
from isvc.local.gateway.login import Login
from isvc.local.gateway.process import WORKERS, EnvoyProcess
from isvc.local.gateway.processor.picking import Pools
from isvc.local.gateway.processor.server import Processor, WhyUnready
from isvc.local.gateway.publisher import Publisher
from isvc.local.gateway.routes.rules import Target
from isvc.local.gateway.routes.table import RouteTable
from isvc.local.gateway.scopes import Scopes
from isvc.local.gateway.spare_socket import SpareSockets
from isvc.local.gateway.tls import Certificates
from isvc.local.gateway.traffic import QUERY as TRAFFIC
from isvc.local.gateway.traffic import Traffic, read_traffic
from isvc.local.gateway.xds import XdsServer
from isvc.local.node.processes.process import Reaper
from isvc.toolkit.cache import Reader
from isvc.toolkit.tasks import cancel
from isvc.wire.private_files import fits_a_socket

log = logging.getLogger("isvc.gateway")

_LOOPBACK: Final = ("127.0.0.1", "::1")
_SECONDS_TO_END: Final = 5.0
_LOOK: Final = 0.02
# What Envoy may send before it is read. A request that waits is not read, and must not keep others from being heard.
_WINDOWS: Final = Configuration(http2_connection_window_size=(1 << 31) - 1, http2_stream_window_size=1 << 18)


class Gateway:
    def __init__(
        self,
        reader: Reader,
        settings: Settings,
        *,
        folder: Path,
        log_file: Path,
        reaper: Reaper,
        why_unready: WhyUnready,
        certificates: Certificates | None = None,
    ) -> None:
        self._reader, self._settings = reader, settings
        self._folder = _private(folder)
        self.login = Login()
        self.table = RouteTable()
        self.backends = Backends(reader)
        self.xds = XdsServer(certificates)
        self._proxies = getproxies()
        beyond = outside.routes(self._proxies)
        scopes = Scopes(self.table, self.backends, settings.front.allowed_origins, beyond)
        self.publisher = Publisher(self.backends, scopes, self.xds)
        self.admin = Admin(self._folder / ADMIN_SOCKET)
        self.pools = Pools(reader)
        self.processor = Processor(self.table, self.backends, self.pools, self.publisher, why_unready, self._metrics)
        self.envoy = EnvoyProcess(self._folder, log_file, reaper)
        self._server: Server | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._spares = SpareSockets(WORKERS)

    @property
    def proxy_url(self) -> str:
        """What pods are given as their HTTP proxy."""
        return self.login.proxy_url(self._settings.pods_port)

    async def start(self) -> None:
        """Starts Envoy; it is ready when `wait_until_live` returns."""
        self._server = Server([self.xds, self.processor], config=_WINDOWS)
        await self._server.start(path=str(self._folder / OWN_SOCKET))
        addresses = await self._open_spares()
        proxy = self._proxies.get("http", "")
        configuration = bootstrap(self._settings, addresses, login=self.login.header, proxy=proxy)
        to_terminal = self._settings.front.access_log == TERMINAL
        self.envoy.start(configuration, shares_terminal=to_terminal)
        self._spares.stand_by(self.envoy.child, self._takes_requests)
        self._tasks = [asyncio.create_task(self.publisher.run()), asyncio.create_task(self.xds.keep_renewing())]

    async def wait_until_live(self) -> None:
        """Returns when Envoy takes requests, by what is known now."""
        await self._spares.is_live.wait()
        await self.publisher.wait_until_published()

    async def _takes_requests(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                if (await self.admin.get("/ready")).startswith(b"LIVE"):
                    return
            await asyncio.sleep(_LOOK)

    def target_changed(self, target: Target) -> None:
        """Notes that something about a Service or InferencePool is another, which Envoy is to know."""
        self.backends.mark_changed(target)
        self.publisher.mark_changed()

    async def drain(self, endpoint: Endpoint, seconds: float) -> bool:
        """Waits until no slice offers the endpoint and nothing runs there; False when the time was not enough.

        It stays in use until then: what replaces it may not have been seen yet.
        """
        try:
            async with asyncio.timeout(seconds):
                while self._reader.by_index(ENDPOINT_SLICES, READY_IN_SLICE, str(endpoint)):
                    await self.publisher.next_change()
                await self.publisher.wait_until_published()
                while await self._count_running(endpoint):  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(_LOOK)
        except TimeoutError:
            return False
        return True

    async def _count_running(self, endpoint: Endpoint) -> int:
        clusters = self.backends.clusters_with(endpoint)
        try:
            return await self.admin.count_running(clusters, endpoint) if clusters else 0
        except OSError:
            return 0  # Envoy is away, and so is what it had under way

    async def close(self) -> None:
        """Ends what is under way, after a while if need be."""
        await self._spares.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_SECONDS_TO_END):
                await self.admin.get("/drain_listeners?inboundonly", "POST")
                while await self.admin.in_flight():  # noqa: ASYNC110 - likewise
                    await asyncio.sleep(_LOOK)
        await cancel(*self._tasks)
        await self.envoy.child.stop()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        await self.pools.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _open_spares(self) -> list[str]:
        """Returns the addresses of this machine; `localhost` may mean either, and not every machine has both."""
        addresses = [address for address in _LOOPBACK if _is_here(address)]
        ports = [self._settings.port, *([self._settings.tls_port] if self._settings.tls_port else [])]
        wanted = [(address, port) for port in ports for address in addresses]
        for address, port in (*wanted, ("127.0.0.1", self._settings.pods_port)):
            await self._spares.open(address, port)
        return addresses

    async def traffic(self) -> Mapping[Key, Traffic]:
        """Returns what goes to Services directly; nothing while Envoy is away."""
        try:
            return read_traffic(await self.admin.get(TRAFFIC))
        except OSError:
            return {}

    async def _metrics(self) -> tuple[bytes, str]:
        try:
            text = (await self.admin.get(metrics.QUERY)).decode()
        except OSError as error:
            text = f"# {error}\n"
        return metrics.translate(text).encode(), metrics.CONTENT_TYPE


def _private(folder: Path) -> Path:
    """Returns an empty folder for sockets that nobody else can open; elsewhere, if its path is too long for one."""
    if not fits_a_socket(folder / ADMIN_SOCKET):
        return Path(tempfile.mkdtemp(prefix="isvc-"))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    return folder


def _is_here(address: str) -> bool:
    """Returns whether this machine has the address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
