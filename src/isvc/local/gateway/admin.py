"""Asks Envoy about itself, on a socket that nobody else can reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import orjson
import re2

from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.listeners import ACTIVE

_SECONDS: Final = 5.0


class Admin:
    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str) -> bytes:
        """Raises OSError where Envoy does not answer."""
        return await self._ask("GET", path)

    async def post(self, path: str) -> bytes:
        """Has Envoy do something. Raises OSError where it does not answer."""
        return await self._ask("POST", path)

    async def _ask(self, method: str, path: str) -> bytes:
        if self._session is None:
            connector = aiohttp.UnixConnector(str(self._socket))
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=_SECONDS))
        try:
            async with self._session.request(method, f"http://envoy{path}") as answer:
                return await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise OSError(f"Envoy does not answer: {error or type(error).__name__}") from error

    async def running(self, clusters: list[str], endpoint: Endpoint) -> int:
        """Returns how many requests an endpoint is answering in these clusters."""
        names = "|".join(re2.escape(name) for name in clusters)
        answer: Any = orjson.loads(await self.get(f"/clusters?format=json&filter={quote(f'^({names})$')}"))
        return sum(
            int(stat.get("value") or 0)
            for cluster in answer.get("cluster_statuses") or ()
            for host in cluster.get("host_statuses") or ()
            if _endpoint(host) == endpoint
            for stat in host.get("stats") or ()
            if stat["name"] == "rq_active"
        )

    async def in_flight(self) -> int:
        """Returns how many requests are being answered."""
        text = await self.get(f"/stats?filter=^{ACTIVE}$")
        return int(text.rpartition(b":")[2] or 0)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()


def _endpoint(host: Any) -> Endpoint | None:
    address = (host.get("address") or {}).get("socket_address") or {}
    return Endpoint(address["address"], address["port_value"]) if "port_value" in address else None
