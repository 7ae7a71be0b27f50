"""Events on their way to an HTTP sink, as CloudEvents: some wait, some are being sent, none holds up a prediction."""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from isvc.pods.agent.cloudevents import Event, Origin
from isvc.pods.agent.logger import Ledger
from isvc.pods.stores.tls import accept_any
from isvc.wire.http1.dial import Proxy
from isvc.wire.http1.message import encode_request, header_lines
from isvc.wire.http1.pool import Pool

log = logging.getLogger("isvc.pods.agent")

_MAX_WAITING = 1000
_SECONDS = 30.0
_IDLE_SECONDS = 20.0
_PAUSES = (0.5, 2.0)  # before the second and the third try
_LAST_SECONDS = 10.0


class HttpSink:
    """Events that wait, and those who send them."""

    def __init__(self, address: Address, origin: Origin, ledger: Ledger, tls: ssl.SSLContext | None) -> None:
        self._address, self._origin, self._ledger = address, origin, ledger
        self._tls = tls if address.secure else None
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(_MAX_WAITING)

    def put(self, event: Event) -> bool:
        if self._waiting.full():
            return False
        self._waiting.put_nowait(event)
        return True

    async def deliver(self, pool: Pool) -> None:
        while True:
            event = await self._waiting.get()
            try:
                await self._send(pool, event)
            finally:
                self._ledger.release(len(event.payload))
                self._waiting.task_done()

    async def drain(self) -> None:
        await self._waiting.join()

    async def _send(self, pool: Pool, event: Event) -> None:
        for pause in (*_PAUSES, None):
            problem, lasting = await self._try_to_send(pool, event)
            if not problem:
                self._ledger.delivered += 1
                return
            if lasting or pause is None:
                break
            await asyncio.sleep(pause)
        self._ledger.failed += 1
        log.error("event %.200r was not delivered to %s: %s", event.id, self._address.shown, problem)

    async def _try_to_send(self, pool: Pool, event: Event) -> tuple[str, bool]:
        """Returns what went wrong, and whether another try would end the same way."""
        try:
            request = self._address.post(event.headers(self._origin, datetime.now(UTC)), event.payload)
            async with asyncio.timeout(_SECONDS):
                reply = await pool.exchange("POST", request, self._tls)
        except ValueError as error:
            return str(error), True
        except OSError as error:  # a timeout is one
            return str(error) or f"no answer within {_SECONDS:.0f} s", False
        if reply.status >= 300:
            return f"it answered {reply.status}", reply.status < 500 and reply.status != 429
        return "", False


class Address:
    """Where a sink is, and how it is reached: directly, or through the proxy of the environment."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is no address of an HTTP server")
        self.shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
        self.secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self.secure else 80)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._headers = [("Host", parts.netloc.rpartition("@")[2])]
        if parts.username is not None:
            login = base64.b64encode(f"{parts.username}:{parts.password or ''}".encode()).decode()
            self._headers.append(("Authorization", f"Basic {login}"))
        found = None if proxy_bypass(self._host) else getproxies().get(parts.scheme)
        self._proxy = Proxy.parse(found) if found else None
        if self._proxy and not self.secure:
            self._target = parts._replace(netloc=self._headers[0][1], fragment="").geturl()
            if self._proxy.authorization:
                self._headers.append(("Proxy-Authorization", self._proxy.authorization))

    def pool(self, limit: int) -> Pool:
        if self._proxy and not self.secure:
            return Pool(self._proxy.host, self._proxy.port, limit=limit, idle_seconds=_IDLE_SECONDS)
        return Pool(self._host, self._port, limit=limit, idle_seconds=_IDLE_SECONDS, proxy=self._proxy)

    def post(self, headers: dict[str, str], body: bytes) -> bytes:
        return encode_request("POST", self._target, header_lines([*self._headers, *headers.items()]), body)


@asynccontextmanager
async def http_sink(
    url: str, origin: Origin, ledger: Ledger, workers: int, tls: ssl.SSLContext | None
) -> AsyncIterator[HttpSink]:
    """Yields a sink; at the end what still waits is delivered, for a while."""
    address = Address(url)
    sink, pool = HttpSink(address, origin, ledger, tls), address.pool(workers)
    tasks = [asyncio.create_task(sink.deliver(pool)) for _ in range(workers)]
    try:
        yield sink
        try:
            await asyncio.wait_for(sink.drain(), _LAST_SECONDS)
        except TimeoutError:
            log.error("not every event was delivered to %s before the end", address.shown)
    finally:
        for task in tasks:
            task.cancel()
        await pool.close()


def trust(ca_file: Path, skip_verify: bool) -> ssl.SSLContext:
    """Returns whose certificates a sink may have: those of the file, where there is one, or the system's."""
    if not ca_file.is_file():
        return ssl.create_default_context()
    context = ssl.create_default_context(cafile=str(ca_file))
    return accept_any(context) if skip_verify else context
