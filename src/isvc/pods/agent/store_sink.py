"""Events on their way to a store: gathered in batches by number and time, and written from threads of their own."""

from __future__ import annotations

import asyncio
import logging
import posixpath
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import quote

import orjson

from isvc.pods.agent.cloudevents import Event, Origin
from isvc.pods.agent.http_sink import Address
from isvc.pods.agent.log_store import LogStore
from isvc.pods.agent.logger import Ledger
from isvc.pods.agent.records import Sender, encode, json_records
from isvc.pods.stores.errors import Unreachable

log = logging.getLogger("isvc.pods.agent")

_WRITERS = 2
_MAX_WAITING = 1000  # events
_PAUSES = (0.5, 2.0, 8.0)  # before the second and later tries
_LARGEST_BATCH = 16 << 20  # bytes with which a batch is written however few events it has
_LONGEST_ID = 180
_LAST_SECONDS = 20.0
_MARSHAL_SECONDS = 30.0

# Makes an object of a batch: its content, and how its name ends.
Marshal: TypeAlias = Callable[[Sequence[Event]], Awaitable[tuple[bytes, str]]]


@dataclass(frozen=True, slots=True)
class Batching:
    """A batch is written when it has `size` events, or when its first has waited for `seconds`, if that is not 0."""

    size: int = 1
    seconds: float = 0.0


@dataclass(slots=True)
class _Batch:
    events: list[Event] = field(default_factory=list)
    bytes: int = 0
    timer: asyncio.TimerHandle | None = None


class StoreSink:
    """Requests and answers have batches of their own, so that an object holds one or the other."""

    def __init__(
        self, open_store: Callable[[], LogStore], folder: str, batching: Batching, marshal: Marshal, ledger: Ledger
    ) -> None:
        self._open_store, self._folder, self._batching = open_store, folder, batching
        self._marshal, self._ledger = marshal, ledger
        self._store: LogStore | None = None
        self._open: dict[str, _Batch] = {}
        self._full: asyncio.Queue[_Batch] = asyncio.Queue()
        self._waiting = 0
        self._threads = ThreadPoolExecutor(_WRITERS, thread_name_prefix="store")

    def put(self, event: Event) -> bool:
        if self._waiting >= _MAX_WAITING:
            return False
        self._waiting += 1
        batch = self._open.setdefault(event.kind, _Batch())
        batch.events.append(event)
        batch.bytes += len(event.payload)
        if len(batch.events) >= self._batching.size or batch.bytes >= _LARGEST_BATCH:
            self._close(event.kind)
        elif batch.timer is None and self._batching.seconds:
            loop = asyncio.get_running_loop()
            batch.timer = loop.call_later(self._batching.seconds, self._close, event.kind)
        if self._waiting >= _MAX_WAITING:  # there is no room for a batch to become any fuller
            self._close_all()
        return True

    def _close(self, kind: str) -> None:
        batch = self._open.pop(kind)
        if batch.timer is not None:
            batch.timer.cancel()
        self._full.put_nowait(batch)

    async def deliver(self) -> None:
        while True:
            batch = await self._full.get()
            try:
                await self._write(batch.events)
            finally:
                self._waiting -= len(batch.events)
                self._ledger.release(batch.bytes)
                self._full.task_done()

    async def drain(self) -> None:
        """Returns when everything is written, batches that are not full as well."""
        self._close_all()
        await self._full.join()

    def _close_all(self) -> None:
        for kind in list(self._open):
            self._close(kind)

    def stop(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _write(self, events: Sequence[Event]) -> None:
        loop = asyncio.get_running_loop()
        problem: Exception
        for pause in (*_PAUSES, None):
            try:
                content, extension = await self._marshal(events)
                await loop.run_in_executor(self._threads, self._put, self._key(events[0], extension), content)
            except Exception as error:  # a writer that ended would take all later events with it
                problem = error
            else:
                self._ledger.delivered += len(events)
                return
            if pause is None or not isinstance(problem, Unreachable | OSError):
                break
            await asyncio.sleep(pause)
        self._ledger.failed += len(events)
        log.error("%d events were not kept: %s", len(events), problem)

    def _put(self, key: str, content: bytes) -> None:
        if self._store is None:
            self._store = self._open_store()
        self._store.put(key, content)

    def _key(self, first: Event, extension: str) -> str:
        """The id is the client's to choose: it names no other folder, and no name that is too long."""
        name = quote(first.id, safe="", errors="surrogateescape")[:_LONGEST_ID]
        return f"{self._folder}/{name}-{first.kind}.{extension}".lstrip("/")


def folder_of(origin: Origin, path: str) -> str:
    """Returns the folder of a service's logs, below the address that is configured for all; no path leads out of it."""
    parts = (origin.namespace, origin.inference_service, origin.component)
    return posixpath.join(*filter(None, parts), posixpath.normpath(f"/{path}").lstrip("/")).rstrip("/")


def format_marshal(form: str, sender: Sender) -> Marshal:
    async def marshal(events: Sequence[Event]) -> tuple[bytes, str]:
        return await asyncio.to_thread(encode, form, events, sender)

    return marshal


def external_marshal(url: str, sender: Sender) -> Marshal:
    """Returns a service that is sent the records as JSON and answers with the object.

    A header says how its name ends.
    """
    address = Address(url)
    pool = address.pool(_WRITERS)
    tls = ssl.create_default_context() if address.secure else None

    async def marshal(events: Sequence[Event]) -> tuple[bytes, str]:
        request = address.post({"Content-Type": "application/json"}, orjson.dumps(json_records(events, sender)))
        async with asyncio.timeout(_MARSHAL_SECONDS):
            reply = await pool.exchange("POST", request, tls)
        if not 200 <= reply.status < 300:
            raise Unreachable(f"the marshaller at {address.shown} answered {reply.status}")
        return reply.body, reply.headers.get("x-log-marshal-extension") or "json"

    return marshal


@asynccontextmanager
async def run_writers(sink: StoreSink) -> AsyncIterator[StoreSink]:
    """Runs a sink's writers; at the end what still waits is written, for a while."""
    tasks = [asyncio.create_task(sink.deliver()) for _ in range(_WRITERS)]
    try:
        yield sink
        try:
            await asyncio.wait_for(sink.drain(), _LAST_SECONDS)
        except TimeoutError:
            log.error("not every event was written before the end")
    finally:
        for task in tasks:
            task.cancel()
        sink.stop()
