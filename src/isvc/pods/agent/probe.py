"""Whether the model server is ready: the agent is probed in its place, and asks it as the kubelet would have."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

import msgspec

from isvc.pods.agent import http1
from isvc.pods.agent.peer import Peer
from isvc.pods.stores.tls import accept_any

_QUEUE = "queue"
_MAX_HEAD = 1 << 16


class Header(msgspec.Struct):
    name: str
    value: str = ""


class HttpGet(msgspec.Struct, rename="camel"):
    port: int
    path: str = "/"
    host: str = ""
    scheme: str = "HTTP"
    http_headers: list[Header] = []


class Socket(msgspec.Struct):
    """Of a TCP probe; of a gRPC probe, too, whose server is ready when it listens."""

    port: int
    host: str = ""


class Probe(msgspec.Struct, rename="camel"):
    http_get: HttpGet | None = None
    tcp_socket: Socket | None = None
    grpc: Socket | None = None
    timeout_seconds: float = 1

    async def succeeds(self) -> bool:
        try:
            async with asyncio.timeout(self.timeout_seconds or 1):
                if self.http_get:
                    return await _answers(self.http_get)
                if socket := self.tcp_socket or self.grpc:
                    (await _connect(socket.host, socket.port)).close()
        except (OSError, http1.Malformed):  # a timeout is an OSError
            return False
        return True


class Readiness:
    """What the agent answers those who probe it."""

    def __init__(self, text: str, ports: Mapping[str, int]) -> None:
        """`text` is a probe as JSON, or a list of them; `ports` took the place of the container's on this machine."""
        parsed = msgspec.json.decode(text, type=Probe | list[Probe]) if text else []
        self._probes = parsed if isinstance(parsed, list) else [parsed]
        for probe in self._probes:
            for action in (probe.http_get, probe.tcp_socket, probe.grpc):
                if action is not None:
                    action.port = ports.get(str(action.port), action.port)
        self.draining = False

    async def answer(self, headers: http1.Headers) -> tuple[int, bytes, str]:
        plain = "text/plain; charset=utf-8"
        if self.draining:
            return 503, b"shutting down\n", plain
        if (asked := headers.get("k-network-probe")) != _QUEUE:
            return 400, f"unexpected probe header value: {asked}\n".encode(errors="replace"), plain
        ready = await asyncio.gather(*(probe.succeeds() for probe in self._probes))
        return (200, _QUEUE.encode(), plain) if all(ready) else (503, b"", plain)


def is_probe(headers: http1.Headers) -> bool:
    agent = headers.get("user-agent")
    return agent.startswith(("kube-probe/", "Knative-Activator-Probe")) or bool(headers.all("k-kubelet-probe"))


async def _answers(get: HttpGet) -> bool:
    server = await _connect(get.host, get.port, secure=get.scheme.upper() == "HTTPS")
    try:
        given = {header.name: header.value for header in get.http_headers}
        headers = {"Host": f"{get.host or '127.0.0.1'}:{get.port}", "User-Agent": "kube-probe/isvc", **given}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        server.write(f"GET {get.path or '/'} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n".encode())
        raw = await http1.take_head(server, _MAX_HEAD)
        return raw is not None and 200 <= http1.parse_response(raw, "GET")[0].status < 400
    finally:
        server.abort()


async def _connect(host: str, port: int, *, secure: bool = False) -> Peer:
    context = accept_any(ssl.create_default_context()) if secure else None
    _, peer = await asyncio.get_running_loop().create_connection(Peer, host or "127.0.0.1", port, ssl=context)
    return peer
