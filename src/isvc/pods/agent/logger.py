"""Logs what goes through: every request and answer becomes an event for a sink, which no prediction waits for."""

from __future__ import annotations

import asyncio
import logging
import ssl
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
from aiohttp import web

from isvc.pods.agent.cloudevents import REQUEST, RESPONSE, Event, Origin
from isvc.pods.agent.exchange import COPY, Handler

log = logging.getLogger("isvc.pods.agent")

# What a sink that does not keep up may hold of the agent's memory.
_MAX_WAITING = 1000
_MAX_WAITING_BYTES = 64 << 20


class Sink:
    """Events on their way. When the sink does not keep up, the newest are dropped and that is said."""

    def __init__(self, url: str, origin: Origin) -> None:
        self._url = url
        self._origin = origin
        self._waiting: asyncio.Queue[Event] = asyncio.Queue(_MAX_WAITING)
        self._bytes = 0
        self._dropped = 0

    def put(self, event: Event) -> None:
        if self._waiting.full() or self._bytes + len(event.payload) > _MAX_WAITING_BYTES:
            self._dropped += 1
            if self._dropped & (self._dropped - 1) == 0:  # at 1, 2, 4, 8 …
                log.error("%s does not keep up: %d events were dropped so far", self._url, self._dropped)
            return
        self._bytes += len(event.payload)
        self._waiting.put_nowait(event)

    async def deliver(self, session: aiohttp.ClientSession) -> None:
        while True:
            event = await self._waiting.get()
            try:
                await self._send(session, event)
            finally:
                self._bytes -= len(event.payload)
                self._waiting.task_done()

    async def drained(self) -> None:
        await self._waiting.join()

    async def _send(self, session: aiohttp.ClientSession, event: Event) -> None:
        try:
            headers = event.headers(self._origin, datetime.now(UTC))
            async with session.post(self._url, data=event.payload, headers=headers) as answer:
                if answer.status >= 300:
                    log.warning("%s answered %d to event %s", self._url, answer.status, event.id)
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            log.error("event %s was not delivered to %s: %s", event.id, self._url, error or type(error).__name__)


@asynccontextmanager
async def sink(url: str, origin: Origin, workers: int, tls: ssl.SSLContext | bool) -> AsyncIterator[Sink]:
    """A sink and its workers; at the end what still waits is delivered, for a while."""
    found = Sink(url, origin)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=tls),
        timeout=aiohttp.ClientTimeout(total=30),
        skip_auto_headers=("Content-Type",),
        trust_env=True,
    )
    async with session:
        tasks = [asyncio.create_task(found.deliver(session)) for _ in range(workers)]
        try:
            yield found
            try:
                await asyncio.wait_for(found.drained(), 10)
            except TimeoutError:
                log.error("not every event was delivered to %s before the end", url)
        finally:
            for task in tasks:
                task.cancel()


def trust(ca_file: Path, skip_verify: bool) -> ssl.SSLContext | bool:
    """Whose certificates a sink may have: those of the file, where there is one, or the system's."""
    if not ca_file.is_file():
        return True
    context = ssl.create_default_context(cafile=str(ca_file))
    if skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Logger:
    """`mode` is all, request or response. Answers are logged when they are successes."""

    def __init__(self, following: Handler, sink: Sink, mode: str, metadata_headers: Sequence[str]) -> None:
        self._following = following
        self._sink = sink
        self._mode = mode
        self._metadata_headers = {name.lower(): name for name in metadata_headers}

    async def handle(self, request: web.Request) -> web.StreamResponse:
        arrived = datetime.now(UTC)
        body = await request.read()
        event_id = request.headers.get("Ce-Id") or str(uuid.uuid4())
        content_type = request.headers.get("Content-Type", "")
        metadata = {
            name: [_readable(value) for value in request.headers.getall(lower)]
            for lower, name in self._metadata_headers.items()
            if lower in request.headers
        }
        if self._mode in ("all", "request"):
            self._sink.put(Event(REQUEST, event_id, arrived, content_type, body, metadata))
        if self._mode == "request":
            return await self._following(request)
        copy = request[COPY] = bytearray()
        response = await self._following(request)
        if response.status == 200:
            payload = _body(response) if isinstance(response, web.Response) else bytes(copy)
            self._sink.put(Event(RESPONSE, event_id, datetime.now(UTC), content_type, payload, metadata))
        return response


def _readable(value: str) -> str:
    """A header's value, with what is no UTF-8 in it replaced."""
    return value.encode(errors="surrogateescape").decode(errors="replace")


def _body(response: web.Response) -> bytes:
    return bytes(response.body) if isinstance(response.body, bytes | bytearray) else b""
