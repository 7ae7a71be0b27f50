from __future__ import annotations

import asyncio
import logging

import pytest
from tests.manual_clock import ManualClock

from isvc.kube.errors import Conflict
from isvc.kube.objects import Key, Object
from isvc.kube.resource import DEPLOYMENTS, SERVICES, Resource
from isvc.toolkit.cache.cache import _add_own_write
from isvc.toolkit.cache.informer import Handler
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch
from isvc.toolkit.queue import FIRST_BACKOFF


def deployment(name: str, **metadata: object) -> dict:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "ns", **metadata}}


def owned(kind: str, api_version: str, name: str) -> dict:
    references = [
        {"kind": "Other", "apiVersion": api_version, "name": "first"},
        {"kind": kind, "apiVersion": api_version, "name": name, "controller": True},
    ]
    return deployment("child", ownerReferences=references)


class TestWatch:
    def test_maps_an_object_to_itself(self):
        assert list(Watch(DEPLOYMENTS).keys(None, deployment("a"))) == [Key("ns", "a")]
        assert list(Watch(DEPLOYMENTS).keys(deployment("a"), None)) == [Key("ns", "a")]

    def test_maps_a_child_to_the_owner_that_controls_it(self):
        watch = Watch(SERVICES, to=OwnerOf(DEPLOYMENTS))
        assert list(watch.keys(None, owned("Deployment", "apps/v1beta1", "parent"))) == [Key("ns", "parent")]
        assert list(watch.keys(None, owned("Deployment", "other/v1", "parent"))) == []
        assert list(watch.keys(None, owned("StatefulSet", "apps/v1", "parent"))) == []
        assert list(watch.keys(None, deployment("orphan"))) == []

    def test_a_mapper_sees_what_was_and_what_is(self):
        watch = Watch(DEPLOYMENTS, to=lambda obj: [Key("", obj["metadata"]["labels"]["team"])])
        before, after = deployment("a", labels={"team": "red"}), deployment("a", labels={"team": "blue"})
        assert set(watch.keys(before, after)) == {Key("", "red"), Key("", "blue")}

    def test_a_predicate_can_refuse(self):
        watch = Watch(DEPLOYMENTS, when=lambda before, after: before is None)
        assert list(watch.keys(None, deployment("a")))
        assert not list(watch.keys(deployment("a"), deployment("a")))


class Changes:
    """The part of a cache that tells of changes; a test makes them."""

    def __init__(self) -> None:
        self.handlers: list[Handler] = []

    def subscribe(self, resource: Resource, handler: Handler, *, before: bool) -> None:
        self.handlers.append(handler)

    def change(self, obj: Object) -> None:
        for handler in self.handlers:
            handler(None, obj)


async def test_changes_within_the_delay_of_a_watch_are_reconciled_together():
    clock, changes = ManualClock(), Changes()
    controller = Controller("test", Attempts(None), [Watch(DEPLOYMENTS, delay=2)], clock=clock)
    controller.connect(changes)  # type: ignore[arg-type]
    for _ in range(2):
        changes.change(deployment("a"))
        clock.advance(1)
        controller.queue.tick()
    assert len(controller.queue) == 1  # two seconds after the first change, not after the last
    assert await controller.queue.take() == Key("ns", "a")
    controller.queue.done(Key("ns", "a"))
    clock.advance(10)
    controller.queue.tick()
    assert len(controller.queue) == 0
    controller.queue.close()


class Attempts:
    """A reconcile that does what a test asks for, attempt by attempt."""

    def __init__(self, *answers: object) -> None:
        self._answers = list(answers)
        self.keys: list[Key] = []
        self.over = asyncio.Event()

    async def __call__(self, key: Key) -> Result | None:
        self.keys.append(key)
        answer = self._answers.pop(0)
        if not self._answers:
            self.over.set()
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]


async def run(controller: Controller, attempts: Attempts) -> None:
    controller.queue.add(Key("ns", "a"))
    task = asyncio.create_task(controller.run())
    async with asyncio.timeout(30):
        await attempts.over.wait()
        controller.queue.close()
        await task


async def run_until_idle(controller: Controller) -> None:
    task = asyncio.create_task(controller.run())
    async with asyncio.timeout(30):
        while len(controller.queue) or controller.queue.busy:
            await asyncio.sleep(0)
        controller.queue.close()
        await task


async def test_a_crash_is_logged_and_tried_again(caplog):
    attempts = Attempts(ZeroDivisionError("oops"), Conflict("stale"), None)
    controller = Controller("test", attempts, [])
    with caplog.at_level(logging.WARNING):
        await run(controller, attempts)
    assert attempts.keys == [Key("ns", "a")] * 3
    assert "test ns/a: oops" in caplog.text
    assert "stale" not in caplog.text
    assert controller.queue.retry(Key("ns", "a")) == FIRST_BACKOFF


async def test_another_object_of_the_name_does_not_wait_for_the_failures_of_the_first():
    """It comes before a reconcile has missed the first one."""
    changes, key = Changes(), Key("ns", "a")
    controller = Controller("test", Attempts(None), [Watch(DEPLOYMENTS), Watch(SERVICES, to=lambda service: [key])])
    controller.connect(changes)  # type: ignore[arg-type]
    for _ in range(10):
        controller.queue.retry(key)
    of_deployments, of_services = changes.handlers
    of_services(deployment("child"), None)
    assert controller.queue.retry(key) > FIRST_BACKOFF
    of_deployments(deployment("a"), None)
    of_deployments(None, deployment("a"))
    assert controller.queue.retry(key) == FIRST_BACKOFF


async def test_a_reconcile_may_ask_to_be_called_again():
    attempts = Attempts(Result(requeue_after=0.001), None)
    await run(Controller("test", attempts, []), attempts)
    assert len(attempts.keys) == 2


async def test_an_object_that_is_gone_is_not_looked_at_again():
    async def find_nothing(key: Key) -> Result:
        times_left.append(len(controller.queue._due))
        return Result(is_gone=True)

    times_left: list[int] = []
    controller = Controller("test", find_nothing, [])
    controller.queue.add_after(Key("ns", "a"), 3600)
    for name in "ab":  # one after the other
        controller.queue.add(Key("ns", name))
    await run_until_idle(controller)
    assert times_left == [1, 0]


async def test_a_reconcile_that_is_always_due_again_keeps_nobody_from_running():
    calls = 0

    async def reconcile(key: Key) -> Result:
        nonlocal calls
        calls += 1
        if calls == 1000:  # nobody else has run until now
            controller.queue.close()
        return Result(requeue_after=0)

    controller = Controller("test", reconcile, [])
    controller.queue.add(Key("ns", "a"))
    task = asyncio.create_task(controller.run())
    while not calls:
        await asyncio.sleep(0)
    assert calls < 1000
    controller.queue.close()
    async with asyncio.timeout(30):
        await task


@pytest.mark.parametrize("workers", [1, 4])
async def test_others_run_between_two_reconciles_that_wait_for_nothing(workers):
    order: list[str] = []

    async def reconcile(key: Key) -> None:
        order.append(key.name)
        asyncio.get_running_loop().call_soon(order.append, "other")

    controller = Controller("test", reconcile, [], workers)
    for name in "abcd":
        controller.queue.add(Key("ns", name))
    await run_until_idle(controller)
    assert order[:7] == ["a", "other", "b", "other", "c", "other", "d"]


@pytest.mark.parametrize("own", [False, True])
async def test_what_a_reconcile_writes_itself_counts_for_a_watch_that_says_so(own):
    watch, attempts = Watch(SERVICES, own=own), 0
    obj = SERVICES.typed({"metadata": {"name": "a", "namespace": "ns", "resourceVersion": "7"}})

    async def reconcile(key: Key) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            _add_own_write(obj, obj)
            controller._enqueuer(watch)(None, obj)

    controller = Controller("test", reconcile, [watch], ignore_own_writes_for=SERVICES)
    controller.queue.add(Key.of(obj))
    await run_until_idle(controller)
    assert attempts == (2 if own else 1)


async def test_nothing_is_reconciled_while_it_is_not_allowed():
    attempts = Attempts(None)
    controller = Controller("test", attempts, [])
    controller._allowed = lambda: False
    controller.queue.add(Key("ns", "a"))
    await run_until_idle(controller)
    assert attempts.keys == []


@pytest.mark.parametrize("workers", [1, 4])
async def test_as_many_workers_run_as_asked_for(workers):
    together, peak = 0, 0

    async def reconcile(key: Key) -> None:
        nonlocal together, peak
        together += 1
        peak = max(peak, together)
        for _ in range(5 * workers):
            await asyncio.sleep(0)
        together -= 1

    controller = Controller("test", reconcile, [], workers)
    for number in range(12):
        controller.queue.add(Key("ns", str(number)))
    await run_until_idle(controller)
    assert peak == workers
