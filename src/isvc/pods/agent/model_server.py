"""The other container of the pod, as those see it who have something of their own to ask."""

from __future__ import annotations

from isvc.wire.http1.client_connection import Stale
from isvc.wire.http1.message import encode_request, header_lines
from isvc.wire.http1.pool import Pool

_CONNECTIONS = 100
_IDLE_SECONDS = 2.0  # less than model servers keep a connection that nobody uses


class ModelServer:
    def __init__(self, port: int) -> None:
        self._host = f"127.0.0.1:{port}"
        self._pool = Pool("127.0.0.1", port, limit=_CONNECTIONS, idle_seconds=_IDLE_SECONDS)

    async def post(self, target: str, body: bytes, trace: str = "") -> tuple[int, bytes]:
        """Raises OSError when there is no answer."""
        headers = [("Host", self._host), ("Content-Type", "application/json")]
        if trace:
            headers.append(("traceparent", trace))
        request = encode_request("POST", target, header_lines(headers), body)
        try:
            reply = await self._pool.exchange("POST", request, None)
        except Stale:  # the connection was kept for too long; predicting or loading twice does no harm
            reply = await self._pool.exchange("POST", request, None)
        return reply.status, reply.body

    async def close(self) -> None:
        await self._pool.close()
