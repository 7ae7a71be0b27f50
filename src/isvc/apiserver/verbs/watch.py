"""Watching: the changes after a revision, as a stream of lines.

Lines are made once per event and shared by all plain watchers. Lines that pile up during one turn of the event loop go
out in one chunk. For a client that does not take its lines events are queued, as references to what the store has; one
that falls too far behind is cut off, never waited for, and may go on from where it was.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable
from functools import lru_cache

import orjson

from isvc.apiserver import forms, refusals
from isvc.apiserver.http.response import Stream, Writer
from isvc.apiserver.request import Call
from isvc.apiserver.store.entry import ADDED, DELETED, MODIFIED, Entry, Event, encode
from isvc.apiserver.verbs import listing
from isvc.apiserver.verbs.list_options import check_watch
from isvc.apiserver.verbs.pipeline import Api, from_stored, refresh
from isvc.kube.errors import ApiError, BadRequest, Gone
from isvc.kube.objects import Object
from isvc.kube.quantity import is_whole_number
from isvc.wire.http1 import message

MAX_BACKLOG = 1 << 20  # bytes on their way to one client
MAX_QUEUED = 4096  # events that one client is behind
MAX_QUEUED_BYTES = 16 << 20  # of their objects, which all who are behind share; the store remembers more
_CHUNK = 1 << 16
_MOST_DIGITS = 19  # of a revision
BOOKMARK_SECONDS = 30.0
BOOKMARK = "BOOKMARK"
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


async def watch(api: Api, call: Call) -> message.Response:
    """Checks what can be refused with a status code; the rest happens in the stream."""
    watcher = Watcher(api, call)
    if call.request.headers.get("upgrade", "").lower() == "websocket":
        from isvc.apiserver.http.websocket import upgrade  # 50 ms, which hardly anybody needs

        return upgrade(call.request, watcher.run)
    return Stream(watcher.run)


class Watcher:
    def __init__(self, api: Api, call: Call) -> None:
        query = call.request.query
        self._api = api
        self._call = call
        self._description = call.description
        self._namespace = call.namespace
        chosen = listing.filter_of(call)
        self._matches: Callable[[Entry], bool] | None = chosen.test() if chosen else None
        self._bookmarks = call.request.flag("allowWatchBookmarks")
        self._initial = call.request.flag("sendInitialEvents")
        check_watch(query)
        self._rv = query.get("resourceVersion", "") or "0"
        if not self._rv.isascii() or not self._rv.isdigit() or len(self._rv) > _MOST_DIGITS:
            why = f'strconv.ParseUint: parsing "{self._rv}": invalid syntax'
            raise refusals.Unspecific(f'resourceVersion: Invalid value: "{self._rv}": {why}')
        self._form = forms.requested_form(call.request)
        # Plain watchers are sent the stored bytes; the others need conversion, which may wait for a webhook.
        self._plain = self._form == forms.OBJECT and self._description.resource == self._description.stored
        self._timeout = float(_seconds(query.get("timeoutSeconds", ""))) or random.uniform(1800, 3600)  # noqa: S311
        self._lines: list[bytes] = []
        self._size = 0  # of the lines
        self._behind = not self._plain  # events go through the queue
        self._room, self._room_bytes = sys.maxsize, sys.maxsize  # in the queue, once the initial state is on its way
        self._queue: asyncio.Queue[tuple[str, Entry, int]] = asyncio.Queue()
        self._writer: Writer
        self._over = asyncio.Event()

    async def run(self, writer: Writer) -> None:
        self._writer = writer
        writer.gone.add_done_callback(lambda _: self._over.set())
        unsubscribe = self._api.store.subscribe(self._description.collection, self._on_event)
        self._api.registry.on_change(self._on_registry)
        tasks = [asyncio.create_task(self._remind())]
        try:
            if self._begin():
                self._room, self._room_bytes = MAX_QUEUED, MAX_QUEUED_BYTES
                tasks.append(asyncio.create_task(self._catch_up()))
                await asyncio.wait_for(self._over.wait(), self._timeout)
        except TimeoutError:
            pass
        finally:
            unsubscribe()
            self._api.registry.off_change(self._on_registry)
            for task in tasks:
                task.cancel()
            self._flush()  # before the stream ends, not in the next turn of the loop

    def _begin(self) -> bool:
        """Sends what happened before now; everything later comes through the subscription."""
        rv = int(self._rv)
        try:
            if self._initial and rv > self._api.store.issued:
                raise listing.too_new(rv, self._api.store.rv)
            if rv == 0 or self._initial:
                self._send_state()
            elif rv > self._api.store.issued:
                # From another life of this server, whose revisions ran further: only a new list can help.
                raise Gone(f"too old resource version: {rv} ({self._api.store.rv})")
            else:
                for event in self._api.store.since(rv, self._description.collection):
                    self._on_event(event)
        except ApiError as error:
            self._line(line("ERROR", orjson.dumps(error.status())))
            return False
        return True

    def _send_state(self) -> None:
        for entry in self._api.store.list(self._description.collection, self._namespace):
            if self._matches is None or self._matches(entry):
                self._send(ADDED, entry, entry.rv)
        if self._initial and self._bookmarks:
            self._send_bookmark({INITIAL_EVENTS_END: "true"})

    def _on_event(self, event: Event) -> None:
        entry = event.entry
        if self._namespace and entry.namespace != self._namespace:
            return
        if self._matches is None:
            self._send(event.type, entry, event.rv)
            return
        before = event.old is not None and self._matches(event.old)
        after = event.type != DELETED and self._matches(entry)
        if after:
            self._send(MODIFIED if before else ADDED, entry, event.rv)
        elif before:
            assert event.old is not None
            gone = entry if event.type == DELETED else event.old
            self._send(DELETED, gone, event.rv)

    def _send(self, kind: str, entry: Entry, rv: int) -> None:
        if self._behind:
            self._enqueue(kind, entry, rv)
        else:
            self._line(self._plain_line(kind, entry, rv))

    def _plain_line(self, kind: str, entry: Entry, rv: int) -> bytes:
        refresh(entry, self._description)
        return event_line(kind, entry) if rv == entry.rv else line(kind, encode(at_revision(entry.parse(), rv)))

    def _enqueue(self, kind: str, entry: Entry, rv: int) -> None:
        self._queue.put_nowait((kind, entry, rv))
        self._room -= 1
        self._room_bytes -= len(entry.raw)
        if self._room < 0 or self._room_bytes < 0:
            self._over.set()

    def _send_bookmark(self, annotations: dict[str, str] | None = None) -> None:
        if self._behind:
            marker = Entry("", "", "", self._api.store.rv, orjson.dumps(annotations or {}), {})
            self._enqueue(BOOKMARK, marker, self._api.store.rv)
            return
        self._line(line(BOOKMARK, encode(self._bookmark(self._api.store.rv, annotations or {}))))

    def _bookmark(self, rv: int, annotations: dict[str, str]) -> Object:
        gvk = self._description.gvk
        meta: Object = {"resourceVersion": str(rv)}
        if annotations:
            meta["annotations"] = annotations
        return {"kind": gvk.kind, "apiVersion": gvk.api_version, "metadata": meta}

    def _line(self, data: bytes) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_soon(self._flush)
        self._lines.append(data)
        self._size += len(data)
        if self._size > _CHUNK:
            self._flush()

    def _flush(self) -> None:
        if not self._lines:
            return
        data, self._lines, self._size = b"".join(self._lines), [], 0
        self._writer.write(data)
        self._behind = self._behind or self._writer.backlog() > MAX_BACKLOG

    async def _catch_up(self) -> None:
        """Sends lines for the events in the queue, in order and as fast as the client takes them."""
        first = True
        while True:
            kind, entry, rv = await self._queue.get()
            self._room += 1
            self._room_bytes += len(entry.raw)
            if self._writer.backlog() > _CHUNK:
                await self._writer.drain()
            if self._plain and kind != BOOKMARK:
                self._line(self._plain_line(kind, entry, rv))
            else:
                self._line(line(kind, encode(await self._convert(kind, entry, rv, first))))
            first = False
            self._behind = not self._plain or not self._queue.empty()

    async def _convert(self, kind: str, entry: Entry, rv: int, first: bool) -> Object:
        if kind == BOOKMARK:
            obj = self._bookmark(rv, orjson.loads(entry.raw))
        else:
            obj = at_revision(await from_stored(self._description, entry), rv)
        if self._form != forms.OBJECT:
            obj = forms.one_as(self._form, self._call, obj)
        if self._form == forms.TABLE and not first:
            obj["columnDefinitions"] = None  # said once is enough
        return obj

    async def _remind(self) -> None:
        while self._bookmarks:
            await asyncio.sleep(BOOKMARK_SECONDS)
            self._send_bookmark()

    def _on_registry(self, crd: str) -> None:
        if crd == self._description.collection:
            self._over.set()


def _seconds(text: str) -> int:
    if text and not is_whole_number(text):
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text or 0)


def at_revision(obj: Object, rv: int) -> Object:
    obj["metadata"]["resourceVersion"] = str(rv)
    return obj


def line(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


@lru_cache(maxsize=64)
def event_line(kind: str, entry: Entry) -> bytes:
    return line(kind, entry.raw)
