"""The work queue: keys in, one at a time out, each with at most one worker.

A key added twice is worked once; a key added while it is being worked is worked again afterwards. Failures back off
per key. Keys leave in the order they came, so a key that is always busy cannot starve the others.

One key leaves in a turn of the event loop: a reconcile often waits for nothing, and hundreds of them in one turn would
keep probes and webhooks from being answered. Delayed keys wait on the loop's timer.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from math import inf
from typing import Generic, Protocol, TypeVar

from isvc.toolkit.clock import Clock, SystemClock
from isvc.wire.turns import room_in_turn

K = TypeVar("K", bound=Hashable)

FIRST_BACKOFF = 0.005
LAST_BACKOFF = 1000.0
_PATIENCE = 5


class Closed(Exception):
    """The queue has been shut down and has nothing left."""


class QueueMeter(Protocol):
    """What the metrics want to know."""

    def observe_add(self, depth: int) -> None: ...
    def observe_retry(self) -> None: ...
    def observe_take(self, waited: float, depth: int) -> None: ...
    def observe_done(self, worked: float, depth: int) -> None: ...


class Queue(Generic[K]):
    def __init__(self, clock: Clock | None = None, meter: QueueMeter | None = None) -> None:
        self._clock = clock or SystemClock()
        self._meter = meter
        self._ready: deque[K] = deque()
        self._dirty: dict[K, float] = {}  # to be worked, and since when
        self._working: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}  # the earliest time of each key in _later
        self._lapsing: dict[K, float] = {}  # the same of those that need not come, if they are worked before
        self._quiet: dict[K, float] = {}  # the same of those that come when nothing is heard of them
        self._waiting = (self._due, self._lapsing, self._quiet)
        self._heard: dict[K, float] = {}  # since when something is heard of those that wait until it is quiet
        self._order = 0
        self._wake: asyncio.TimerHandle | None = None
        self._turn = asyncio.Lock()
        self._filled = asyncio.Event()
        self.closed = False

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def busy(self) -> int:
        """Returns how many keys are being worked."""
        return len(self._working)

    def running_seconds(self) -> list[float]:
        """Returns for how long each key that is being worked has been so."""
        now = self._clock.monotonic()
        return [now - since for since in self._working.values()]

    def add(self, key: K) -> None:
        if self.closed or key in self._dirty:
            return
        self._dirty[key] = self._clock.monotonic()
        if key not in self._working:
            self._push(key)
        if self._meter:
            self._meter.observe_add(len(self._ready))

    def add_after(self, key: K, seconds: float, *, lapses: bool = False) -> None:
        """Adds the key then; of several delays of one key the shortest counts.

        One that `lapses` is forgotten when the key is worked before.
        """
        if seconds <= 0:
            return self.add(key)
        due = self._clock.monotonic() + seconds
        earliest = min(self._due.get(key, inf), self._lapsing.get(key, inf) if lapses else inf)
        if self.closed or due >= earliest:
            return None
        return self._wait(self._lapsing if lapses else self._due, key, due)

    def add_when_quiet(self, key: K, seconds: float) -> None:
        """Adds the key when this was not called again for so many seconds, or for five times as many at the latest.

        It is forgotten when the key is worked before.
        """
        if seconds <= 0:
            return self.add(key)
        now = self._clock.monotonic()
        latest = self._heard.setdefault(key, now) + _PATIENCE * seconds
        return None if self.closed else self._wait(self._quiet, key, min(now + seconds, latest))

    def _wait(self, waiting: dict[K, float], key: K, due: float) -> None:
        waiting[key] = due
        self._order += 1
        heapq.heappush(self._later, (due, self._order, key))
        if self._wake is None or self._later[0][1] == self._order:
            self._set_timer()

    def retry(self, key: K) -> float:
        """Adds the key after its backoff, which doubles with each failure; returns the seconds until then."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds: float = min(FIRST_BACKOFF * 2 ** min(failures, 30), LAST_BACKOFF)
        if self._meter:
            self._meter.observe_retry()
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """Resets the backoff of a key that went well: the next failure starts from the shortest one."""
        self._failures.pop(key, None)

    def forget_delays(self, key: K) -> None:
        """Forgets when the key was to come again: its object is gone, and a delay may last for years.

        What lapses stays: it came while the key was being worked.
        """
        self._due.pop(key, None)
        if len(self._later) > 2 * sum(map(len, self._waiting)):
            self._later = [each for each in self._later if any(w.get(each[2]) == each[0] for w in self._waiting)]
            heapq.heapify(self._later)

    async def take(self) -> K:
        """Returns the next key; the caller calls `done` with it afterwards. Raises Closed at the end."""
        async with self._turn:
            await asyncio.sleep(0)
            await room_in_turn()
            while not self._ready:
                if self.closed:
                    raise Closed
                self._filled.clear()
                await self._filled.wait()
                await room_in_turn()
            key = self._ready.popleft()
        now = self._clock.monotonic()
        since = self._dirty.pop(key)
        self._working[key] = now
        for overtaken in (self._lapsing, self._quiet, self._heard):
            overtaken.pop(key, None)
        if self._meter:
            self._meter.observe_take(now - since, len(self._ready))
        return key

    def done(self, key: K) -> None:
        started = self._working.pop(key)
        if key in self._dirty:
            self._push(key)
        if self._meter:
            self._meter.observe_done(self._clock.monotonic() - started, len(self._ready))

    def close(self) -> None:
        """Drops what waits and what is ready; what is being worked may finish."""
        self.closed = True
        self._ready.clear()
        self._dirty.clear()
        self._later.clear()
        for waiting in (*self._waiting, self._heard):
            waiting.clear()
        if self._wake:
            self._wake.cancel()
        self._filled.set()

    def tick(self) -> None:
        """Moves the keys whose time has come; called by the timer, or by a test that owns the clock."""
        now = self._clock.monotonic()
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            for waiting in self._waiting:
                if waiting.get(key) == due:  # else an earlier one has replaced it, or it has lapsed
                    del waiting[key]
                    self.add(key)
        self._set_timer()

    def _push(self, key: K) -> None:
        self._ready.append(key)
        self._filled.set()

    def _set_timer(self) -> None:
        if self._wake:
            self._wake.cancel()
            self._wake = None
        if self._later:
            wait = max(0.0, self._later[0][0] - self._clock.monotonic())
            self._wake = asyncio.get_running_loop().call_later(wait, self.tick)
