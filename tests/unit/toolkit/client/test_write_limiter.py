from __future__ import annotations

import asyncio
from itertools import count

import uvloop
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import let_others_run, until

from isvc.toolkit.client.write_limiter import WriteLimiter


class Writers:
    """Writers that hold their slot until they may finish."""

    def __init__(self, at_once: int) -> None:
        self.now = 0.0
        self.limiter = WriteLimiter(at_once, lambda: self.now)
        self.began: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.done: dict[str, asyncio.Event] = {}

    async def come(self, name: str, due: float) -> None:
        async def write() -> None:
            await self.limiter.acquire(due)
            self.began.append(name)
            try:
                await self.done[name].wait()
            finally:
                self.limiter.release()

        self.done[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(write())
        await let_others_run()

    async def finish(self, *names: str) -> None:
        for name in names:
            self.done[name].set()
            await self.tasks[name]
            await let_others_run()

    async def leave(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.gather(self.tasks[name], return_exceptions=True)
        await let_others_run()


async def test_no_write_waits_while_half_of_the_slots_are_free():
    writers = Writers(4)
    await writers.come("event", 9)
    await writers.come("status", 5)
    assert writers.began == ["event", "status"]


def test_writes_that_are_due_in_less_than_uvloops_timers_can_tell_come_then():
    async def come() -> list[str]:
        writers = Writers(4)
        for name, due in (("child", 0), ("other", 0), ("status", 0.0001), ("event", 0.0001)):
            await writers.come(name, due)
        writers.now = 1
        await until(lambda: len(writers.began) == 4, "the last one")
        return writers.began

    assert uvloop.run(come()) == ["child", "other", "status", "event"]


async def test_half_of_the_slots_are_for_what_is_due():
    writers = Writers(4)
    for name, due in (("child", 0), ("another child", 0), ("status", 1), ("third child", 0)):
        await writers.come(name, due)
    assert writers.began == ["child", "another child", "third child"]
    await writers.finish("child", "another child")
    assert writers.began[-1] == "status"


async def test_statuses_wait_until_children_come_seldom():
    writers, children = Writers(4), [f"child {number}" for number in range(8)]
    for name in children:
        await writers.come(name, 0)
        await writers.finish(name)
    await writers.come("status", 2)
    assert writers.began == children
    writers.now = 0.25
    await until(lambda: writers.began[-1] == "status", "the status is written")


async def test_no_status_waits_longer_than_it_may_however_many_children_come():
    writers = Writers(1)
    for number in range(8):
        await writers.come(f"child {number}", 0)
        await writers.finish(f"child {number}")
    await writers.come("status", 0.1)
    writers.now = 0.1
    await writers.come("late child", 0.1)
    assert writers.began[-1] == "status"
    await writers.finish("status")
    assert writers.began[-1] == "late child"


async def test_who_is_due_first_goes_first_and_equals_in_the_order_they_came():
    writers = Writers(1)
    await writers.come("first", 0)
    for name, due in (("event", 3), ("status", 1), ("child", 0), ("another child", 0)):
        await writers.come(name, due)
    await writers.finish("first", "child", "another child", "status")
    assert writers.began == ["first", "child", "another child", "status", "event"]


async def test_a_status_that_is_due_is_not_overtaken_by_what_comes_later():
    writers = Writers(2)
    for name, due in (("first", 0), ("second", 0), ("status", 1)):
        await writers.come(name, due)
    writers.now = 1.5
    await writers.come("late child", 1.5)
    await writers.finish("first")
    assert writers.began == ["first", "second", "status"]


async def test_who_is_due_goes_even_if_all_others_hang():
    writers = Writers(2)
    await writers.come("hangs", 0)
    await writers.come("status", 0.01)
    assert writers.began == ["hangs"]
    writers.now = 0.01
    await until(lambda: writers.began == ["hangs", "status"], "the status is written")


async def test_who_gives_up_takes_no_turn_along():
    writers = Writers(1)
    for name, due in (("first", 0), ("impatient", 1), ("next", 2)):
        await writers.come(name, due)
    await writers.leave("impatient")
    await writers.finish("first")
    assert writers.began == ["first", "next"]


async def test_a_turn_that_is_given_and_cancelled_at_once_is_passed_on():
    writers = Writers(1)
    for name, due in (("first", 0), ("unlucky", 1), ("next", 2)):
        await writers.come(name, due)
    writers.done["first"].set()
    await asyncio.sleep(0)  # the turn is on its way to "unlucky", which has not yet run
    await writers.leave("unlucky")
    assert writers.began[-1] == "next"


@given(st.integers(1, 4), st.lists(st.tuples(st.floats(0, 9), st.booleans()), max_size=30))
async def test_all_get_their_turn_and_never_too_many_at_once(at_once, arrivals):
    limiter, active, most, done = WriteLimiter(at_once, count(4.0, 0.1).__next__), 0, 0, 0

    async def write(due: float) -> None:
        nonlocal active, most, done
        await limiter.acquire(due)
        active += 1
        most = max(most, active)
        try:
            await asyncio.sleep(0)
            done += 1
        finally:
            active -= 1
            limiter.release()

    tasks = [asyncio.create_task(write(due)) for due, _ in arrivals]
    await asyncio.sleep(0)
    for task, (_, leaves) in zip(tasks, arrivals, strict=True):
        if leaves:
            task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most <= at_once
    assert done == sum(not task.cancelled() for task in tasks)
    async with asyncio.timeout(5):
        await asyncio.gather(*(write(0) for _ in range(at_once)))  # no turn was lost
