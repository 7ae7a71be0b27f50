from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from isvc.toolkit.turns import Turns


class Writers:
    """Writers that hold their turn until they are told to finish."""

    def __init__(self, at_once: int) -> None:
        self.turns = Turns(at_once)
        self.began: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.done: dict[str, asyncio.Event] = {}

    async def come(self, name: str, due: float) -> None:
        async def write() -> None:
            async with self.turns.turn(due):
                self.began.append(name)
                await self.done[name].wait()

        self.done[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(write())
        await settle()

    async def finish(self, name: str) -> None:
        self.done[name].set()
        await self.tasks[name]
        await settle()

    async def leave(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.gather(self.tasks[name], return_exceptions=True)
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_nobody_waits_while_there_is_room():
    writers = Writers(2)
    await writers.come("event", 9)
    await writers.come("status", 5)
    assert writers.began == ["event", "status"]


async def test_who_is_due_first_goes_first_and_equals_in_the_order_they_came():
    writers = Writers(1)
    await writers.come("first", 0)
    for name, due in (("event", 3.0), ("status", 1.0), ("child", 0.5), ("another child", 0.5)):
        await writers.come(name, due)
    for name in ("first", "child", "another child", "status"):
        await writers.finish(name)
    assert writers.began == ["first", "child", "another child", "status", "event"]


async def test_a_status_that_is_due_is_not_overtaken_by_what_came_later():
    writers = Writers(1)
    await writers.come("first", 0)
    await writers.come("status", 1.0)
    await writers.come("late child", 1.5)
    await writers.finish("first")
    assert writers.began == ["first", "status"]


async def test_who_gives_up_takes_no_turn_along():
    writers = Writers(1)
    await writers.come("first", 0)
    await writers.come("impatient", 1)
    await writers.come("next", 2)
    await writers.leave("impatient")
    await writers.finish("first")
    assert writers.began == ["first", "next"]


async def test_a_turn_that_is_given_and_cancelled_at_once_is_passed_on():
    writers = Writers(1)
    await writers.come("first", 0)
    await writers.come("unlucky", 1)
    await writers.come("next", 2)
    writers.done["first"].set()
    await asyncio.sleep(0)  # the turn is on its way to "unlucky", which has not yet run
    await writers.leave("unlucky")
    assert writers.began[-1] == "next"


@given(st.integers(1, 4), st.lists(st.tuples(st.floats(0, 9), st.booleans()), max_size=30))
async def test_all_get_their_turn_and_never_too_many_at_once(at_once, arrivals):
    turns, active, most, done = Turns(at_once), 0, 0, 0

    async def write(due: float) -> None:
        nonlocal active, most, done
        async with turns.turn(due):
            active += 1
            most = max(most, active)
            try:
                await asyncio.sleep(0)
                done += 1
            finally:
                active -= 1

    tasks = [asyncio.create_task(write(due)) for due, _ in arrivals]
    await asyncio.sleep(0)
    for task, (_, leaves) in zip(tasks, arrivals, strict=True):
        if leaves:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most <= at_once
    assert done == sum(not task.cancelled() for task in tasks)
    async with asyncio.timeout(60):
        await asyncio.gather(*(write(0) for _ in range(at_once)))  # no turn was lost
