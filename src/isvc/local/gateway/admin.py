"""Asks Envoy about itself, on a socket that nobody else can reach."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson
import re2

from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.wire.failures import message_of
from isvc.wire.http1.client_connection import ClientConnection

_SECONDS: Final = 5.0
_IN_FLIGHT: Final = "http.gateway.downstream_rq_active"


class Admin:
    def __init__(self, socket: Path) -> None:
        self._socket = socket

    async def get(self, path: str, method: str = "GET") -> bytes:
        """Raises OSError where Envoy does not answer; to have it do something takes the method POST."""
        request = f"{method} {path} HTTP/1.1\r\nHost: envoy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_SECONDS):
                _, connection = await loop.create_unix_connection(
                    lambda: ClientConnection(lambda _: None), str(self._socket)
                )
                try:
                    return (await connection.exchange(request.encode())).body
                finally:
                    connection.abort()
        except OSError as error:
            raise OSError(f"Envoy does not answer: {message_of(error)}") from error

    async def count_running(self, clusters: list[str], endpoint: Endpoint) -> int:
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
        text = await self.get(f"/stats?filter=^{_IN_FLIGHT}$")
        return int(text.rpartition(b":")[2] or 0)


def _endpoint(host: Any) -> Endpoint | None:
    address = (host.get("address") or {}).get("socket_address") or {}
    return Endpoint(address["address"], address["port_value"]) if "port_value" in address else None
