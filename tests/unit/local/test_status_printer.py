from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from tests.manual_clock import ManualClock
from tests.waiting import let_others_run

from isvc.kube.objects import Object
from isvc.local.status_printer import LATEST_LOOK, LONGEST_PAUSE, StatusPrinter


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
        await let_others_run()
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses == sorted(pauses)
    assert pauses[-1] >= LONGEST_PAUSE
    assert printed == ["default/iris is starting", "default/iris is not ready: no such file"]
    printer.changed(None, service("True", url="http://iris"))
    count = len(asked)
    clock.advance(100)
    await let_others_run()
    assert len(asked) == count
    running.cancel()


async def test_what_goes_on_changing_is_looked_into_late_and_many_rarely_but_each_of_them():
    clock, asked = ManualClock(), list[str]()

    async def describe(service: Object) -> str:
        asked.append(service["metadata"]["name"])
        return "is not ready"

    printer = StatusPrinter(lambda text: None, describe, clock)
    running = asyncio.create_task(printer.run())
    await let_others_run()

    async def pass_seconds(seconds: int, names: list[str]) -> None:
        for _ in range(seconds):
            for name in names:
                unready = service("False")
                printer.changed(None, {**unready, "metadata": {**unready["metadata"], "name": name}})
            clock.advance(1)
            await let_others_run()

    await pass_seconds(int(LATEST_LOOK) - 1, ["iris"])
    assert asked == []
    await pass_seconds(2, ["iris"])
    assert asked == ["iris"]
    asked.clear()
    printer.changed(None, service("True", url="http://iris"))
    await pass_seconds(60, [f"many-{number}" for number in range(100)])
    assert 0 < len(asked) <= 12
    for number in range(92):
        printer.changed(service() | {"metadata": {"name": f"many-{number}", "namespace": "default"}}, None)
    asked.clear()
    await pass_seconds(60, [])  # in which those that are left stay as they are
    assert set(asked) == {f"many-{number}" for number in range(92, 100)}
    running.cancel()
