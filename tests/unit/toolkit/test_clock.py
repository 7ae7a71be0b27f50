"""Waiting for a time of day, on machines whose clock is set and that sleep."""

from __future__ import annotations

import asyncio

import pytest
from tests.manual_clock import ManualClock
from tests.waiting import let_others_run

from isvc.toolkit.clock import until


@pytest.mark.parametrize("set_back", [0.0, -3600.0, 3600.0], ids=["nobody", "ahead", "back"])
async def test_what_is_due_at_a_time_of_day_does_not_wait_for_a_clock_that_was_set(set_back: float) -> None:
    clock = ManualClock()
    waiting = asyncio.create_task(until(clock, 600))
    await let_others_run()
    clock.set_back(set_back)
    clock.advance(60)
    await let_others_run()
    assert waiting.done() == (set_back != 0)
    for _ in range(9):
        clock.advance(60)
        await let_others_run()
    assert waiting.done()
