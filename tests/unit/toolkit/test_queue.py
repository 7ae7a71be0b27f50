from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.manual_clock import ManualClock

from isvc.toolkit.queue import Closed, Queue


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def queue(clock):
    queue: Queue[str] = Queue(clock)
    yield queue
    queue.close()


def pass_time(queue: Queue[str], clock: ManualClock, seconds: float) -> None:
    clock.advance(seconds)
    queue.tick()


async def test_a_key_added_twice_is_worked_once(queue):
    queue.add("a")
    queue.add("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_a_key_added_while_it_is_worked_comes_again_but_only_afterwards(queue):
    queue.add("a")
    await queue.take()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.take() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_keys_leave_in_the_order_they_came_so_a_busy_key_starves_nobody(queue):
    for key in "abc":
        queue.add(key)
    order = []
    for _ in range(6):
        key = await queue.take()
        order.append(key)
        queue.add("a")  # always busy
        if key != "a":
            queue.add(key)
        queue.done(key)
    assert order == ["a", "b", "c", "a", "b", "c"]


async def test_backoff_doubles_from_5_ms_to_1000_s_and_starts_anew_after_success(queue):
    waits = [queue.retry("a") for _ in range(20)]
    assert waits[:4] == [0.005, 0.01, 0.02, 0.04]
    assert waits[-1] == 1000.0
    queue.forget("a")
    assert queue.retry("a") == 0.005


async def test_backoffs_of_different_keys_do_not_mix(queue):
    for _ in range(5):
        queue.retry("a")
    assert queue.retry("b") == 0.005


async def test_a_delayed_key_comes_when_its_time_has_come(queue, clock):
    queue.add_after("a", 10)
    pass_time(queue, clock, 9.99)
    assert len(queue) == 0
    pass_time(queue, clock, 0.02)
    assert await queue.take() == "a"


async def test_of_two_delays_the_shorter_counts_and_the_key_comes_once(queue, clock):
    queue.add_after("a", 10)
    queue.add_after("a", 5)
    queue.add_after("a", 20)
    pass_time(queue, clock, 6)
    assert await queue.take() == "a"
    queue.done("a")
    pass_time(queue, clock, 60)
    assert len(queue) == 0


async def test_a_delay_does_not_hold_back_an_immediate_add(queue, clock):
    queue.add_after("a", 10)
    queue.add("a")
    assert await queue.take() == "a"
    queue.done("a")
    pass_time(queue, clock, 11)
    assert await queue.take() == "a"


async def test_a_delay_that_lapses_is_forgotten_when_the_key_is_worked_before(queue, clock):
    queue.add_after("a", 10, lapses=True)
    queue.add("a")
    queue.done(await queue.take())
    pass_time(queue, clock, 10)
    assert not len(queue)
    queue.add_after("a", 10, lapses=True)
    pass_time(queue, clock, 10)
    assert await queue.take() == "a"


@pytest.mark.parametrize("lapsing", [(True, False), (False, True)])
@pytest.mark.parametrize("seconds", [(5, 10), (10, 5)])
async def test_a_delay_that_does_not_lapse_is_kept_beside_one_that_does(queue, clock, seconds, lapsing):
    for each, lapses in zip(seconds, lapsing, strict=True):
        queue.add_after("a", each, lapses=lapses)
    queue.add("a")
    queue.done(await queue.take())
    pass_time(queue, clock, 10)
    assert len(queue) == 1


async def test_delays_of_an_object_that_is_gone_are_forgotten(queue, clock):
    for key in "abc":
        queue.add_after(key, 100)
        queue.add_after(key, 10, lapses=True)
    for key in "ab":
        queue.forget_delays(key)
    pass_time(queue, clock, 10)
    assert [await queue.take() for _ in "abc"] == [*"abc"]
    for key in "abc":
        queue.done(key)
        queue.forget_delays(key)
    pass_time(queue, clock, 100)
    assert not len(queue)
    assert not queue._later


async def test_those_that_are_forgotten_take_no_others_along(queue, clock):
    queue.add_after("lapses", 10, lapses=True)
    queue.add_when_quiet("quiet", 10)
    for key in range(9):
        queue.add_after(str(key), 100)
    for key in range(9):
        queue.forget_delays(str(key))
    pass_time(queue, clock, 10)
    assert len(queue) == 2


async def test_a_delay_that_lapses_does_so_beside_a_longer_one_that_does_not(queue, clock):
    queue.add_after("a", 100)
    queue.add_after("a", 10, lapses=True)
    queue.add("a")
    queue.done(await queue.take())
    pass_time(queue, clock, 10)
    assert not len(queue)
    pass_time(queue, clock, 90)
    assert len(queue) == 1


async def test_a_key_that_waits_until_it_is_quiet_comes_when_it_is_or_after_five_times_as_long(queue, clock):
    for _ in range(2):  # what was asked before it was worked does not count the second time
        queue.add_when_quiet("a", 10)
        pass_time(queue, clock, 9)
        queue.add_when_quiet("a", 10)
        pass_time(queue, clock, 9)
        assert not len(queue)
        pass_time(queue, clock, 1)
        queue.done(await queue.take())
    for _ in range(9):
        assert not len(queue)
        queue.add_when_quiet("a", 10)
        pass_time(queue, clock, 6)
    assert len(queue) == 1


@pytest.mark.parametrize("sooner", [0, 1])
async def test_what_is_asked_for_sooner_does_not_wait_until_it_is_quiet(queue, clock, sooner):
    queue.add_when_quiet("a", 10)
    queue.add_when_quiet("a", sooner)
    pass_time(queue, clock, sooner)
    queue.done(await queue.take())
    pass_time(queue, clock, 100)
    assert not len(queue)


async def test_no_delay_is_an_immediate_add(queue):
    queue.add_after("a", 0)
    assert len(queue) == 1


async def test_delayed_keys_come_by_themselves_on_the_real_clock():
    queue: Queue[str] = Queue()
    queue.add_after("later", 0.02)
    queue.add_after("sooner", 0.001)
    async with asyncio.timeout(30):
        assert [await queue.take(), await queue.take()] == ["sooner", "later"]


async def test_close_wakes_workers_drops_what_waits_and_lets_work_finish(queue):
    queue.add("a")
    await queue.take()
    queue.add("b")
    queue.add("a")
    queue.close()
    with pytest.raises(Closed):
        await queue.take()
    assert queue.busy == 1
    queue.done("a")
    assert queue.busy == 0
    assert len(queue) == 0
    queue.add("c")
    assert len(queue) == 0


async def test_workers_that_wait_are_released_by_close(queue):
    workers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.close()
    assert all(isinstance(each, Closed) for each in await asyncio.gather(*workers, return_exceptions=True))


async def test_a_wake_up_meant_for_a_cancelled_worker_reaches_another(queue):
    first, second = asyncio.create_task(queue.take()), asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    async with asyncio.timeout(30):
        assert await second == "a"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=60), st.integers(1, 5))
def test_no_key_has_two_workers_and_the_last_add_is_always_followed_by_work(adds, workers):
    """However adds interleave with work, a key is worked after its last add, and never twice at a time."""

    async def scenario() -> None:
        queue: Queue[str] = Queue()
        added: dict[str, int] = {}
        seen: dict[str, int] = {}
        busy: set[str] = set()

        async def work() -> None:
            while True:
                try:
                    key = await queue.take()
                except Closed:
                    return
                assert key not in busy
                busy.add(key)
                seen[key] = added[key]
                await asyncio.sleep(0)
                busy.discard(key)
                queue.done(key)

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        for step, (key, pauses) in enumerate(adds):
            added[key] = step
            queue.add(key)
            for _ in range(pauses):
                await asyncio.sleep(0)
        while len(queue) or queue.busy:
            await asyncio.sleep(0)
        assert seen == added
        queue.close()
        await asyncio.gather(*tasks)

    asyncio.run(scenario())
