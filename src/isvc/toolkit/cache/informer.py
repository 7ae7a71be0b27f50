"""Mirrors one selection of one kind: list, then watch, for ever.

A broken watch resumes where it stopped; one that is too old is listed again, and what vanished meanwhile is reported as
deleted. While the server is away attempts back off. An optional kind whose CRD is missing is empty, and is looked for
again when the CRDs change; of one that was there the server has to say so several times. Of any other kind it empties
nothing: a proxy may say so, and whoever removes a CRD has its objects deleted first.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from isvc.kube.errors import ApiError, Forbidden, Gone, NotFound
from isvc.kube.objects import Key, Object, dig
from isvc.toolkit.client import Client
from isvc.toolkit.client.answers import Page, WatchEvent
from isvc.toolkit.clock import Clock
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.reads import Read
from isvc.toolkit.store import Decoded, Store
from isvc.wire.turns import room_in_turn

log = logging.getLogger(__name__)

Handler = Callable[[Object | None, Object | None], None]

FIRST_BACKOFF = 0.1
LAST_BACKOFF = 30.0
LOOK_AGAIN = 120.0  # for a missing kind, if CRDs cannot be watched
LOOK_OFTEN = 0.25  # when its CRD has just come
HOPE = 15.0
HEALTHY = 1.0  # an attempt that lived this long starts the backoff anew
RELIST_AFTER = 3  # refusals in a row: perhaps the server does not know our version


class Informer:
    def __init__(
        self,
        client: Client,
        read: Read,
        clock: Clock,
        on_lost: Callable[[], None] | None = None,
        decoded: Decoded | None = None,
    ) -> None:
        """`on_lost` is called whenever the server cannot be reached; `decoded` is shared with other informers."""
        self.resource = read.resource
        self.read = read
        self.store = Store(read.indexers, decoded)
        self.synced = False  # it holds what the server has (or had, when last heard of)
        self.forbidden = False  # the server does not let us read this kind
        self._client = client
        self._clock = clock
        self._on_lost = on_lost
        self._handlers: list[Handler] = []
        self._needs_before = False
        self._settled = asyncio.Event()
        self._nudge = asyncio.Event()
        self._hope = 0.0
        self._version = ""
        self._seen = -1  # the newest version that list or watch have brought

    def subscribe(self, handler: Handler, *, before: bool = True) -> None:
        """Calls `handler` with (before, after) for each change, and at once for each object that is known already.

        Without `before` the state before an update is not passed, and need not be decoded.
        """
        self._handlers.append(handler)
        self._needs_before |= before
        for obj in self.store.list():
            handler(None, obj)

    async def wait_for_sync(self) -> None:
        """Waits until it is synced, or known to be missing."""
        await self._settled.wait()

    def nudge(self, *, hopeful: bool) -> None:
        """Looks again, for its CRD has changed; if it is there, until the server has caught up with it."""
        self._hope = self._clock.monotonic() + HOPE if hopeful else 0.0
        self._nudge.set()

    async def run(self) -> None:
        failures = 0
        while True:
            started = self._clock.monotonic()
            problem: Exception | None = None
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except NotFound as error:
                problem = error
                if self.read.optional and (not self.synced or failures >= RELIST_AFTER):
                    self._handle_missing()
                    await self._until_nudged()
                    continue
            except Exception as error:
                problem = error
            lived = self._clock.monotonic() - started
            failures = 0 if problem is None else 1 if lived > HEALTHY else failures + 1
            if problem is not None:
                self._recover(problem, failures, broke=lived > HEALTHY)
            if failures or lived < FIRST_BACKOFF:
                backoff = min(FIRST_BACKOFF * 2 ** min(failures, 20), LAST_BACKOFF)
                await self._clock.sleep(backoff * random.uniform(0.5, 1))  # noqa: S311 - spreads load

    def _recover(self, problem: Exception, failures: int, *, broke: bool) -> None:
        """Decides where to go on after a problem, and whether it is worth a line in the log."""
        known = isinstance(problem, ApiError | ClusterError)
        if isinstance(problem, ClusterError) and self._on_lost:
            self._on_lost()
        self.forbidden = isinstance(problem, Forbidden)
        if isinstance(problem, Gone) or not known or (isinstance(problem, ApiError) and failures > RELIST_AFTER):
            self._version = ""
        if isinstance(problem, Forbidden) and self.read.optional and failures >= RELIST_AFTER:
            self._settled.set()  # not readable, so far; right after its start a server refuses every client
        if not known:  # a mirror that stops is worse than one that starts over
            log.error("%s: listing again after what should not happen", self.resource, exc_info=problem)
        elif not isinstance(problem, Gone):
            loud = not broke and (failures in (1, 5) or failures % 20 == 0)
            text = "watch of %s interrupted: %s" if self.synced else "waiting for %s: %s"
            log.log(logging.WARNING if loud else logging.DEBUG, text, self.resource, problem)

    def note(self, obj: Object) -> None:
        """Takes the answer to a write of our own, so that reads see it before the watch brings it."""
        version = _number(obj)
        if self.synced and self.read.covers(obj) and version > self._seen and version > self.store.version(Key.of(obj)):
            self._put(obj, version)

    async def _list(self) -> None:
        found: set[Key] = set()
        version, rewound = "", False
        collecting = gc.isenabled()
        gc.disable()  # decoding makes only trees; the collector would walk them again and again
        try:
            async with aclosing(self._pages()) as pages:
                async for page in pages:
                    version = page.resource_version
                    rewound = _parse(version) < self._seen  # the server was restored from an older state
                    for obj in page.objects(self.resource):
                        key = Key.of(obj)
                        found.add(key)
                        number, stored = _number(obj), self.store.version(key)
                        if number > stored or (rewound and number != stored):
                            self._put(obj, number)
        finally:
            if collecting:
                gc.enable()
        self._seen = _parse(version)
        for key in [key for key in self.store if key not in found]:
            if rewound or self.store.version(key) <= self._seen:  # else it is a write of ours, newer than the list
                self._remove(key)
        self._version = version
        if not self.synced:
            log.debug("%s: synced with %d objects", self.resource, len(found))
        self.synced, self.forbidden = True, False
        self._settled.set()

    def _pages(self) -> AsyncGenerator[Page, None]:
        chosen = self.read
        return self._client.pages(
            self.resource,
            chosen.namespace,
            labels=chosen.labels,
            fields=chosen.fields,
            metadata_only=chosen.metadata_only,
        )

    async def _watch(self) -> None:
        chosen = self.read
        events = self._client.watch(
            self.resource,
            chosen.namespace,
            resource_version=self._version,
            labels=chosen.labels,
            fields=chosen.fields,
            metadata_only=chosen.metadata_only,
        )
        async with aclosing(events):
            async for event in events:
                await room_in_turn()
                self._take(event)

    def _take(self, event: WatchEvent) -> None:
        self._version = event.version
        self._seen = number = _parse(event.version)
        if event.type == "BOOKMARK":
            return
        if event.type == "DELETED":
            if self.store.version(event.key) <= number:
                self._remove(event.key)
        elif number > self.store.version(event.key):
            self._put(event.object, number)

    def _handle_missing(self) -> None:
        """Notes that the server does not have the kind, which is optional, or has it no more."""
        for key in list(self.store):
            self._remove(key)
        self.synced = False
        self._version = ""
        self._settled.set()

    async def _until_nudged(self) -> None:
        self._nudge.clear()
        patience = LOOK_OFTEN if self._clock.monotonic() < self._hope else LOOK_AGAIN
        with suppress(TimeoutError):
            await asyncio.wait_for(self._nudge.wait(), patience)

    def _put(self, obj: Object, number: int) -> None:
        key = Key.of(obj)
        obj = reduce_object(obj, self._client.field_manager)
        if self.read.transform:
            obj = self.read.transform(obj)
        if self.store.holds_another(key, obj):  # it is gone: who compares the two would take one for the other
            self._remove(key)
        before = self.store.get(key) if self._needs_before else None
        try:
            self.store.put(key, obj, number)
        except TypeError as error:
            log.error("%s %s is ignored: %s", self.resource, key, error)
            return
        self._notify(before, obj)

    def _remove(self, key: Key) -> None:
        before = self.store.get(key)
        self.store.remove(key)
        if before is not None:
            self._notify(before, None)

    def _notify(self, before: Object | None, after: Object | None) -> None:
        for handler in self._handlers:
            try:
                handler(before, after)
            except Exception:
                log.exception("%s: a handler failed on %s", self.resource, Key.of(after or before or {}))


def reduce_object(obj: Object, manager: str) -> Object:
    """Drops managedFields, but for the labels and annotations of the object that we set and may remove again."""
    metadata = dict(obj["metadata"])
    if fields := metadata.pop("managedFields", None):
        ours = [
            {"manager": manager, "fieldsV1": {"f:metadata": set_by_us}}
            for entry in fields
            if entry.get("manager") == manager and not entry.get("subresource")
            if (set_by_us := dig(entry, "fieldsV1", "f:metadata"))
        ]
        if ours:
            metadata["managedFields"] = ours
    return {**obj, "metadata": metadata}


def _number(obj: Object) -> int:
    return _parse(obj["metadata"].get("resourceVersion", ""))


def _parse(version: str) -> int:
    return int(version) if version.isdecimal() else -1
