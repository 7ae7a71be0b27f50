from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from tests.manual_clock import ManualClock

from isvc.kube.objects import Object
from isvc.local.status_printer import LONGEST_PAUSE, StatusPrinter


def service(ready: str = "", **status: Any) -> Object:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {"metadata": {"name": "iris", "namespace": "default"}, "status": {"conditions": conditions, **status}}


async def unasked(service: Object) -> str:
    raise AssertionError("nobody asks before a while has passed")


def test_every_change_of_state_is_printed_once():
    printed: list[str] = []
    printer = StatusPrinter(printed.append, unasked, ManualClock())
    ready = service("True", url="http://iris")
    before = None
    for after in (service(), service("False"), service("Unknown"), ready, ready, None):
        printer.changed(before, after)
        before = after
    assert printed == ["default/iris is starting", "default/iris is ready at http://iris", "default/iris is gone"]


def test_other_kinds_are_named():
    printed: list[str] = []
    printer = StatusPrinter(printed.append, unasked, ManualClock())
    printer.changed(None, {**service("False"), "kind": "InferenceGraph"})
    assert printed == ["InferenceGraph default/iris is starting"]


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_stays_unready_is_looked_into_less_and_less_often():
    clock, printed, asked = ManualClock(), list[str](), list[float]()

    async def describe(service: Object) -> str:
        asked.append(clock.monotonic())
        return "is not ready: no such file"

    printer = StatusPrinter(printed.append, describe, clock)
    printer.changed(None, service("False"))
    running = asyncio.create_task(printer.run())
    for _ in range(300):
        clock.advance(1)
        await settled()
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= LONGEST_PAUSE
    assert printed == ["default/iris is starting", "default/iris is not ready: no such file"]
    printer.changed(None, service("True", url="http://iris"))
    count = len(asked)
    clock.advance(100)
    await settled()
    assert len(asked) == count
    running.cancel()
