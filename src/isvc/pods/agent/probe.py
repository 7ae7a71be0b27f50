"""Whether the model server is ready: the agent is probed in its place, and asks it as the kubelet would have."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec
from aiohttp import web

_QUEUE = "queue"


class HttpGet(msgspec.Struct, rename="camel"):
    port: int
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: list[dict[str, str]] = []


class TcpSocket(msgspec.Struct):
    port: int
    host: str = ""


class Probe(msgspec.Struct, rename="camel"):
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    timeout_seconds: float = 1

    async def succeeds(self) -> bool:
        try:
            async with asyncio.timeout(self.timeout_seconds or 1):
                if self.http_get:
                    return await _answers(self.http_get)
                if self.tcp_socket:
                    return await _listens(self.tcp_socket)
        except (OSError, aiohttp.ClientError):  # a timeout is an OSError
            return False
        return True


def parse(text: str, ports: Mapping[str, int]) -> Probe:
    """A probe as JSON; `ports` are those that took the place of the container's on this machine."""
    probe = msgspec.json.decode(text, type=Probe) if text else Probe()
    for action in (probe.http_get, probe.tcp_socket):
        if action is not None:
            action.port = ports.get(str(action.port), action.port)
    return probe


def is_probe(headers: Mapping[str, Any]) -> bool:
    agent = headers.get("User-Agent", "")
    return agent.startswith(("kube-probe/", "Knative-Activator-Probe")) or "K-Kubelet-Probe" in headers


async def answer(request: web.Request, probe: Probe, draining: bool) -> web.Response:
    if draining:
        return web.Response(text="shutting down\n", status=503)
    if (asked := request.headers.get("K-Network-Probe", "")) != _QUEUE:
        return web.Response(text=f"unexpected probe header value: {asked}\n", status=400)
    return web.Response(text=_QUEUE) if await probe.succeeds() else web.Response(status=503)


async def _answers(get: HttpGet) -> bool:
    url = f"{get.scheme.lower()}://{get.host or '127.0.0.1'}:{get.port}{get.path}"
    headers = [(header["name"], header.get("value", "")) for header in get.http_headers]
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=False) as response:
        return 200 <= response.status < 400


async def _listens(socket: TcpSocket) -> bool:
    _, writer = await asyncio.open_connection(socket.host or "127.0.0.1", socket.port)
    writer.close()
    return True
