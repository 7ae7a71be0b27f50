"""Who changes at once what is repaired meets nobody who does the same: after the first repairs it gets quiet."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.manual_clock import ManualClock
from tests.unit.engine.test_every_kind import CASES, SERVICE, World

from isvc.engine.repairs import AT_ONCE, FIRST_PAUSE, FORGOTTEN_AFTER, LONGEST_PAUSE, Repairs
from isvc.kube.objects import Key, Object, deep_copy
from isvc.kube.resource import DEPLOYMENTS, SERVICES

IT = Key("ns", "it")
Stranger = Callable[[World], None]


def change_image(world: World) -> None:
    deployment = deep_copy(world.objects.get(DEPLOYMENTS, "it-predictor", "ns") or {})
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "stranger:1"
    world.server.put(DEPLOYMENTS, deployment)


def delete_service(world: World) -> None:
    if world.objects.get(SERVICES, "it-predictor", "ns"):
        world.objects.remove(SERVICES, "it-predictor", "ns")


def take_finalizer(world: World) -> None:
    put(world, {"metadata": {**(world.live or {})["metadata"], "finalizers": []}})


def lie(world: World) -> None:
    put(world, {"status": {**(world.live or {})["status"], "conditions": [{"type": "Ready", "status": "True"}]}})


def put(world: World, change: Object) -> None:
    world.server.put(world.resource, deep_copy({**(world.live or {}), **change}))


@pytest.fixture(params=[change_image, delete_service, take_finalizer, lie], ids=lambda each: str(each.__name__))
def stranger(request: pytest.FixtureRequest) -> Stranger:
    chosen: Stranger = request.param
    return chosen


async def fight(world: World, stranger: Stranger, rounds: int = 50) -> int:
    """Returns how many of the stranger's changes were answered with writes."""
    answered = 0
    for _ in range(rounds):
        stranger(world)
        before = world.writes
        await world.reconcile()
        answered += world.writes > before
    return answered


async def settled() -> World:
    world = World(CASES["inferenceservice"], SERVICE)
    for _ in range(3):
        await world.reconcile()
    world.events.clear()
    return world


async def test_a_fight_gets_quiet_and_is_told(stranger: Stranger) -> None:
    world = await settled()
    assert AT_ONCE <= await fight(world, stranger) <= AT_ONCE + 2
    assert "Contested" in [event.reason for event in world.events]
    world.clock.advance(FIRST_PAUSE)
    assert await fight(world, stranger) == 1
    world.clock.advance(FIRST_PAUSE)
    assert await fight(world, stranger) == 0, "the second pause is longer"


async def test_an_edit_of_the_service_is_not_kept_waiting(stranger: Stranger) -> None:
    world = await settled()
    await fight(world, stranger)
    edited = {"predictor": {"containers": [{"name": "kserve-container", "image": "server:2"}]}}
    put(world, {"metadata": {**(world.live or {})["metadata"], "generation": 2}, "spec": edited})
    await world.reconcile()
    deployment = world.objects.get(DEPLOYMENTS, "it-predictor", "ns") or {}
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "server:2"


async def test_what_people_edit_is_repaired_at_once_and_not_talked_about(stranger: Stranger) -> None:
    world = await settled()
    for _ in range(20):
        assert await fight(world, stranger, 1) == 1
        world.clock.advance(FORGOTTEN_AFTER)
    assert "Contested" not in [event.reason for event in world.events]


def test_pauses_grow_to_a_limit_and_are_forgotten() -> None:
    clock = ManualClock()
    repairs = Repairs(clock)
    assert [repairs.note(IT) for _ in range(AT_ONCE)] == [0.0] * AT_ONCE
    assert [repairs.note(IT) for _ in range(8)] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, LONGEST_PAUSE, LONGEST_PAUSE]
    assert repairs.note(Key("ns", "another")) == 0.0
    clock.advance(FORGOTTEN_AFTER)
    assert repairs.note(IT) == 0.0
