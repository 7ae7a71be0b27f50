"""A process of controllers: starts its parts in order, runs them, and ends them in the opposite order.

Up: probes, webhooks (conversion answers at once, admission when the caches are filled), caches, certificates,
the lease, controllers. Down, on SIGTERM: reconciles that are under way finish, the lease is released, then the rest.
Losing the lease ends the process: another replica may be acting already.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

from isvc.toolkit.address import Address
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.client.transport import Answered, Observer
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.controller import Controller
from isvc.toolkit.election import Election
from isvc.toolkit.failure import NotLeader
from isvc.toolkit.metrics import ControllerMeter, Metrics
from isvc.toolkit.probes import Probes, Protection
from isvc.toolkit.reconciling import note_answer
from isvc.toolkit.tasks import cancel
from isvc.toolkit.tracing import Tracer
from isvc.toolkit.waiting import retry
from isvc.toolkit.webhook.server import WebhookServer
from isvc.wire.allocator import MANY, settle_memory

log = logging.getLogger(__name__)

FIRST_CONTACT_SECONDS = 30.0  # a machine that has just started may be busy
DRAIN_SECONDS = 25.0  # a pod is killed 30 s after SIGTERM


class Service(Protocol):
    """Something that runs beside the controllers on every replica: certificates, the recorder."""

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


Task = Callable[[], Awaitable[None]]
"""Something the leader does once, beside its controllers; a task that fails ends the manager."""


class Manager:
    def __init__(
        self,
        client: Client,
        cache: Cache,
        *,
        controllers: Sequence[Controller] = (),
        election: Election | None = None,
        webhooks: WebhookServer | None = None,
        services: Sequence[Service] = (),
        tasks: Sequence[Task] = (),
        health_probes: Address | None = None,
        metrics_address: Address | None = None,
        metrics_protection: Protection | None = None,
        metrics: Metrics | None = None,
        tracer: Tracer | None = None,
        prepare: Callable[[], None] = lambda: None,
        shutdown_delay: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """`prepare` is called in a thread while the cache is filled, for what the first request should not wait for.

        For `shutdown_delay` seconds after it has let go of its lease it still answers: until every API server knows
        that it is no longer ready.
        """
        self.client = client
        self.cache = cache
        self.controllers = tuple(controllers)
        for controller in self.controllers:
            cache.declare(controller.name, *controller.reads)
        self.election = election
        self.ready = False
        self.companions: Sequence[Manager] = ()  # managers in the same process, for which its probes answer, too
        self.metrics = metrics or Metrics()
        self._webhooks = webhooks
        self._tracer = tracer
        self._services = (*services, *([tracer] if tracer else []))
        self._tasks = tuple(tasks)
        self._health_probes, self._metrics_address = health_probes, metrics_address
        self._metrics_protection = metrics_protection
        self._prepare = prepare
        self._shutdown_delay, self._clock = shutdown_delay, clock or SystemClock()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends `run` in good order."""
        self._stopping.set()

    async def run(self, *, handle_signals: bool = True) -> None:
        """Runs until SIGTERM, SIGINT or `stop`. Raises NotLeader when the lease is lost.

        An API server that does not answer, at the start or later, is waited for.
        """
        self._wire()
        async with AsyncExitStack() as stack:
            if handle_signals:
                stack.callback(on_signals(self.stop))
            probes = Probes()
            stack.push_async_callback(probes.stop)
            await self._serve_probes(probes)
            stack.push_async_callback(self.cache.stop)
            if not await self._unless_stopped(self._start(stack)):
                return
            if gc.isenabled():  # else whoever starts more than this will see to it
                gc.collect()
                settle_memory(self.cache.count, MANY)
            if self._webhooks:
                self._webhooks.open()
            self.ready = True
            try:
                await self._lead()
            except NotLeader as error:
                log.error("reconciles no more: %s", error)
                raise
            finally:
                self.ready = False
                if self._shutdown_delay:
                    log.info("answering for another %.0f s", self._shutdown_delay)
                    if self._webhooks:
                        self._webhooks.give_up_connections()
                    await self._clock.sleep(self._shutdown_delay)

    async def _start(self, stack: AsyncExitStack) -> None:
        """Starts everything but the controllers, and waits until the cache is filled."""
        await retry("the API server", self._contact, SystemClock())
        for service in (*self._services, *([self._webhooks] if self._webhooks else [])):
            stack.push_async_callback(service.stop)
            await service.start()
        self.cache.start()
        await asyncio.gather(self.cache.wait_for_sync(), asyncio.to_thread(self._prepare))

    async def _contact(self) -> None:
        await self.client.request("GET", "/version", within=FIRST_CONTACT_SECONDS)

    async def _lead(self) -> None:
        if self.election is None:
            await self._control()
            return
        if await self._unless_stopped(self.election.acquire()):
            try:
                await self._control(asyncio.create_task(self.election.hold(), name="lease"))
            finally:
                await self.election.release()

    async def _control(self, lease: asyncio.Task[None] | None = None) -> None:
        """Runs the controllers until `stop` is called or the lease is lost."""
        workers = [asyncio.create_task(each.run(), name=each.name) for each in self.controllers]
        tasks = [asyncio.create_task(_once(task)) for task in self._tasks]
        stopping = asyncio.create_task(self._stopping.wait())
        watched = [stopping, *workers, *tasks, *([lease] if lease else [])]
        log.info("running: %s", ", ".join(each.name for each in self.controllers) or "no controllers")
        try:
            done, _ = await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
            self.ready = False
            for controller in self.controllers:
                controller.queue.close()
            if stopping in done and workers:
                log.info("stopping: %d reconciles under way", sum(each.queue.busy for each in self.controllers))
                await asyncio.wait(workers, timeout=DRAIN_SECONDS)
            for task in done:
                await task  # raises what ended it
        finally:
            await cancel(*watched)

    def _wire(self) -> None:
        meter = self.metrics.request_observer(self.client.config.server.partition("://")[2])
        self.client.observe(meter if self._tracer is None else _both(meter, note_answer))
        if self.election is not None:
            gauge = self.metrics.leading.labels(self.election.name)
            gauge.set(0)
            self.election.on_change = gauge.set
            self.client.guard(self.election.check)
        if self._webhooks is not None:
            self._webhooks.meter = self.metrics
            self.metrics.certificate_expires.set_function(self._webhooks.certificate_expires)
        allowed = self.election.holds if self.election else None
        for controller in self.controllers:
            of_controller = ControllerMeter(
                self.metrics, controller.name, controller.workers, controller.running_seconds
            )
            controller.connect(self.cache, of_controller, allowed, self._tracer)

    async def _serve_probes(self, probes: Probes) -> None:
        checks = {"/healthz": lambda: True, "/readyz": lambda: all(each.ready for each in (self, *self.companions))}
        texts = {"/metrics": self.metrics.text}
        shared = self._health_probes == self._metrics_address and self._metrics_protection is None
        if self._health_probes is not None:
            await probes.serve(self._health_probes, checks=checks, texts=texts if shared else None)
        if self._metrics_address is not None and not shared:
            await probes.serve(self._metrics_address, texts=texts, protection=self._metrics_protection)

    async def _unless_stopped(self, step: Awaitable[None]) -> bool:
        """Waits for a step of the start; False if `stop` is called meanwhile."""
        work = asyncio.ensure_future(step)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((work, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return False
            await work
            return True
        finally:
            await cancel(work, stopping)


def _both(first: Observer, second: Observer) -> Observer:
    def observe(answer: Answered) -> None:
        first(answer)
        second(answer)

    return observe


async def _once(task: Task) -> None:
    await task()
    await asyncio.Event().wait()  # that it is done is no reason to stop


def on_signals(stop: Callable[[], None]) -> Callable[[], None]:
    """Stops on the first SIGTERM or SIGINT; a second one has its usual, immediate effect. Returns what undoes it."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def undo() -> None:
        for number in signals:
            loop.remove_signal_handler(number)

    def handle(number: signal.Signals) -> None:
        log.info("%s: stopping", number.name)
        undo()
        stop()

    for number in signals:
        loop.add_signal_handler(number, handle, number)
    return undo
