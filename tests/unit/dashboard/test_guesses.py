"""Whoever guesses waits; others do not."""

from __future__ import annotations

import asyncio
import time

import pytest
from aiohttp import web

from isvc.dashboard import guesses
from isvc.dashboard.guesses import MOST_IN_LINE, Guesses, network


async def knows(secret: str) -> bool:
    return secret == "open sesame"


async def test_a_wrong_secret_delays_its_own_address_alone(monkeypatch):
    monkeypatch.setattr(guesses, "WRONG_COSTS", 3600.0)
    checked = Guesses(knows)
    attack = [asyncio.create_task(checked.is_right(str(number), "10.0.0.1")) for number in range(MOST_IN_LINE)]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(checked.is_right("open sesame", "10.0.0.2"), 60)
    with pytest.raises(web.HTTPTooManyRequests):
        await checked.is_right("another", "10.0.0.1")
    assert not any(task.done() for task in attack)
    assert await asyncio.wait_for(checked.is_right("open sesame", "10.0.0.1"), 60), "it was right before: no guess"
    for task in attack:
        task.cancel()
    await asyncio.gather(*attack, return_exceptions=True)


async def test_a_wrong_secret_costs_time(monkeypatch):
    monkeypatch.setattr(guesses, "WRONG_COSTS", 0.05)
    started = time.monotonic()
    assert not await Guesses(knows).is_right("friend", "10.0.0.1")
    assert time.monotonic() - started >= 0.05


def test_addresses_of_one_machine():
    assert network("2001:db8:1:2:a::1") == network("2001:db8:1:2:b::2") != network("2001:db8:1:3::1")
    assert network("10.0.0.1") != network("10.0.0.2")
    assert network("") == ""
