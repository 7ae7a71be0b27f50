"""A controller: changes of the kinds it watches become keys, and workers reconcile the keys.

Reconciling is level-triggered: a key says that something may have changed, never what. A reconcile that fails is
logged and tried again after a backoff; one that crashes too. Nothing a reconcile does ends the process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from isvc.kube.errors import ApiError, Conflict
from isvc.kube.objects import Key, Object, resource_version_of
from isvc.kube.resource import Resource
from isvc.toolkit.cache import Cache
from isvc.toolkit.cache.cache import record_own_writes
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.failure import ClusterError, NotLeader
from isvc.toolkit.queue import FIRST_BACKOFF, Closed, Queue, QueueMeter
from isvc.toolkit.reads import Read
from isvc.toolkit.reconciling import CURRENT, Reconciling
from isvc.wire.failures import message_of

log = logging.getLogger(__name__)

Mapper = Callable[[Object], Iterable[Key]]
Predicate = Callable[[Object | None, Object | None], bool]
ChangeMapper = Callable[[Object | None, Object | None], Iterable[Key]]
Delay = Callable[[Key], float]


@dataclass(frozen=True, slots=True)
class Result:
    """Reconcile again after so many seconds, never without letting others run before.

    That happens whatever comes meanwhile, unless it `lapses` with the next reconcile, which knows better, or one finds
    that the object `is_gone`.
    """

    requeue_after: float | None = None
    lapses: bool = False
    is_gone: bool = False


Reconcile = Callable[[Key], Awaitable[Result | None]]


@dataclass(frozen=True, slots=True)
class OwnerOf:
    """Maps an object to the owner that controls it, if that is of this resource."""

    resource: Resource

    def __call__(self, obj: Object) -> Iterable[Key]:
        for reference in obj["metadata"].get("ownerReferences") or ():
            if reference.get("controller") and reference.get("kind") == self.resource.kind:
                group = reference.get("apiVersion", "").rpartition("/")[0]
                if group == self.resource.group:
                    namespace = obj["metadata"].get("namespace", "") if self.resource.namespaced else ""
                    yield Key(namespace, reference["name"])


def changed(part: Callable[[Object], object]) -> Predicate:
    """Returns whether an object was created or deleted, or a part of it is another."""
    return lambda before, after: before is None or after is None or part(before) != part(after)


spec_changed: Final = changed(lambda obj: obj.get("spec"))


@dataclass(frozen=True, slots=True)
class Watch:
    """Reconcile `to(obj)` (the object itself, if not given) when an object changes and `when(before, after)` agrees.

    `on_change` takes the place of both where the keys depend on what changed. With `delay`, which may depend on the
    key, changes that come within so many seconds are reconciled together; with `when_quiet` that time begins anew with
    each of them, up to five times. Without `past`, `to` is asked about an object as it is now alone. With `own`, what a
    reconcile writes itself counts, too.
    """

    resource: Resource
    to: Mapper | None = None
    when: Predicate | None = None
    optional: bool = False
    on_change: ChangeMapper | None = None
    delay: float | Delay = 0.0
    when_quiet: bool = False
    past: bool = True
    own: bool = False

    @property
    def needs_before(self) -> bool:
        """Whether it looks at the state before an update."""
        if self.when is not None or self.on_change is not None:
            return True
        return self.past and self.to is not None and not isinstance(self.to, OwnerOf)

    @property
    def is_of_itself(self) -> bool:
        """Whether it reconciles the very object that changes."""
        return self.to is None and self.on_change is None

    def keys(self, before: Object | None, after: Object | None) -> Iterable[Key]:
        if self.on_change is not None:
            yield from self.on_change(before, after)
            return
        if self.when is not None and not self.when(before, after):
            return
        for obj in (after, before) if self.needs_before or after is None else (after,):
            if obj is not None:
                yield from (Key.of(obj),) if self.to is None else self.to(obj)


class Tracer(Protocol):
    def record(self, reconciling: Reconciling, seconds: float, outcome: str) -> None: ...


class Meter(QueueMeter, Protocol):
    def observe_reconcile(self, result: str, seconds: float, *, crashed: bool = False) -> None: ...


def _all_reads(reads: Sequence[Read], watches: Sequence[Watch]) -> tuple[Read, ...]:
    declared = {read.resource for read in reads}
    others = (watch for watch in watches if watch.resource not in declared)
    return *reads, *(Read(watch.resource, optional=watch.optional) for watch in others)


class Controller:
    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        watches: Sequence[Watch],
        workers: int = 1,
        *,
        reads: Sequence[Read] = (),
        ignore_own_writes_for: Resource | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`reads` declares what it reads beyond its watches, and how it reads what it watches, if not as it comes.

        With `ignore_own_writes_for`, the kind that it reconciles, what a reconcile writes for its object, and notes in
        the cache, does not bring the object back.
        """
        self.name = name
        self.watches = tuple(watches)
        self.reads = _all_reads(reads, watches)
        self.workers = workers
        self.reconcile = reconcile
        self._kind = ignore_own_writes_for.kind if ignore_own_writes_for else ""
        self._heard: dict[Key, set[str]] = {}  # versions that events brought while their key was being reconciled
        self._clock = clock or SystemClock()
        self._meter: Meter | None = None
        self._allowed: Callable[[], bool] = lambda: True
        self._tracer: Tracer | None = None
        self.queue: Queue[Key] = Queue(self._clock)

    def connect(
        self,
        cache: Cache,
        meter: Meter | None = None,
        allowed: Callable[[], bool] | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        """Watches through this cache, and reconciles only while `allowed` says so."""
        self._tracer = tracer
        self._meter = meter
        self._allowed = allowed or self._allowed
        self.queue = Queue(self._clock, meter)
        for watch in self.watches:
            cache.subscribe(watch.resource, self._enqueuer(watch), before=watch.needs_before)

    def running_seconds(self) -> list[float]:
        """Returns for how many seconds each reconcile under way has been running."""
        return self.queue.running_seconds()

    def _enqueuer(self, watch: Watch) -> Callable[[Object | None, Object | None], None]:
        add = self.queue.add_when_quiet if watch.when_quiet else partial(self.queue.add_after, lapses=True)

        def enqueue(before: Object | None, after: Object | None) -> None:
            for key in watch.keys(before, after):
                if after is None and watch.is_of_itself:
                    self.queue.forget(key)  # another of the name may come before this one is missed
                if key in self._heard and not watch.own:
                    # When the reconcile is over it is known whether this was its own write or another's.
                    self._heard[key].add(resource_version_of(after) if after else "")
                else:
                    seconds = watch.delay(key) if callable(watch.delay) else watch.delay
                    add(key, seconds)

        return enqueue

    async def run(self) -> None:
        """Works until the queue is closed; what is being reconciled then is finished."""
        async with asyncio.TaskGroup() as group:
            for number in range(self.workers):
                group.create_task(self._work(), name=f"{self.name} worker {number}")

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.take()
            except Closed:
                return
            try:
                if self._kind:
                    await self._reconcile_ignoring_own_writes(key)
                else:
                    await self._reconcile_once(key)
            finally:
                self.queue.done(key)

    async def _reconcile_ignoring_own_writes(self, key: Key) -> None:
        """Reconcile; events that come meanwhile bring the key back only if others caused them."""
        self._heard[key] = set()
        with record_own_writes(self._kind, key) as own:
            try:
                await self._reconcile_once(key)
            finally:
                if self._heard.pop(key) - own:
                    self.queue.add(key)

    async def _reconcile_once(self, key: Key) -> None:
        if not self._allowed():
            return
        reconciling = Reconciling(self.name, key, [] if self._tracer else None)
        token = CURRENT.set(reconciling)
        try:
            started = self._clock.monotonic()
            outcome, crashed = await self._try(key)
            seconds = self._clock.monotonic() - started
        finally:
            CURRENT.reset(token)
        if self._meter:
            self._meter.observe_reconcile(outcome, seconds, crashed=crashed)
        if self._tracer:
            self._tracer.record(reconciling, seconds, outcome)

    async def _try(self, key: Key) -> tuple[str, bool]:
        """Returns what became of a reconcile, and whether it crashed."""
        crashed = False
        try:
            result = await self.reconcile(key) or Result()
        except NotLeader as error:
            log.warning("%s %s: %s", self.name, key, error)
            outcome = "error"
        except Conflict as error:
            outcome = self._retry(key, error, logging.DEBUG)  # stale by a moment; ordinary
        except (ApiError, ClusterError) as error:
            outcome = self._retry(key, error, logging.WARNING)
        except Exception as error:
            outcome, crashed = self._retry(key, error, logging.ERROR), True
        else:
            self.queue.forget(key)
            outcome = "success"
            if result.is_gone:
                self.queue.forget_delays(key)
            elif result.requeue_after is not None:
                self.queue.add_after(key, max(result.requeue_after, FIRST_BACKOFF), lapses=result.lapses)
                outcome = "requeue_after"
        return outcome, crashed

    def _retry(self, key: Key, error: Exception, level: int) -> str:
        seconds = self.queue.retry(key)
        trace = error if level == logging.ERROR else None
        log.log(
            level,
            "%s %s: %s; again in %.3g s",
            self.name,
            key,
            message_of(error),
            seconds,
            exc_info=trace,
        )
        return "error"
