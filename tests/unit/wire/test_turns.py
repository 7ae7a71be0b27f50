"""Many pieces of work that come together leave the loop to others in between, whoever began them."""

from __future__ import annotations

import asyncio
import time

import pytest
import uvloop

from isvc.wire.turns import room_in_turn

PIECES, SECONDS = 40, 0.001


def work() -> None:
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        pass


async def alone() -> None:
    for _ in range(PIECES):
        await room_in_turn()
        work()


async def together() -> None:
    async def piece() -> None:
        await room_in_turn()
        work()

    await asyncio.gather(*(piece() for _ in range(PIECES)))


async def count_turns(working: asyncio.Task[None]) -> int:
    turns = 0
    while not working.done():
        await asyncio.sleep(0)
        turns += 1
    return turns


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
@pytest.mark.parametrize("all_of_it", [alone, together])
def test_work_that_takes_long_is_spread_over_turns(run, all_of_it):
    async def main() -> int:
        return await count_turns(asyncio.create_task(all_of_it()))

    assert run(main()) >= 7  # of five pieces each, and what begins and ends


async def test_short_work_is_done_in_one_turn(monkeypatch):
    monkeypatch.setattr("isvc.wire.turns._LONG", 600.0)  # however long this process has to wait for a core
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        asyncio.get_running_loop().call_soon(turn)

    turn()
    for _ in range(3):
        await room_in_turn()
    assert turns == 1


async def test_those_who_asked_first_go_on_first():
    order = []

    async def piece(number: int) -> None:
        await room_in_turn()
        order.append(number)
        work()

    await asyncio.gather(*(piece(number) for number in range(PIECES)))
    assert order == sorted(order)
