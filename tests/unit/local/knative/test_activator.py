"""Requests in line: held while there is no pod, let through in order, a pod's share of them and no more."""

from __future__ import annotations

import asyncio

import pytest

from isvc.kube.objects import Key
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.processor.lines import Unavailable
from isvc.local.gateway.traffic import Traffic
from isvc.local.knative.activator import Line
from isvc.toolkit.clock import SystemClock


def new_line(ready: list[Endpoint], concurrency: int = 0, longest: int = 100) -> tuple[Line, list[Key]]:
    """A line to pods that a test sets, and who was woken."""
    woken: list[Key] = []
    line = Line(Key("ns", "rev"), lambda: ready, SystemClock(), woken.append, longest)
    line.update({"spec": {"containerConcurrency": concurrency, "timeoutSeconds": 60}})
    return line, woken


async def test_requests_wait_for_the_first_pod_and_all_of_them_get_there():
    pods: list[Endpoint] = []
    line, woken = new_line(pods)
    served: list[int] = []

    async def request(number: int) -> None:
        async with line.admit():
            served.append(number)

    tasks = [asyncio.create_task(request(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert woken == [Key("ns", "rev")] * 5
    assert line.demand.under_way == 5
    pods.append(Endpoint("127.0.0.1", 1))
    line.advance()
    await asyncio.gather(*tasks)
    assert served == [0, 1, 2, 3, 4]
    assert line.demand.under_way == 0
    assert line.running(Endpoint("127.0.0.1", 1)) == 0


async def test_a_pod_gets_no_more_than_it_takes_at_a_time():
    pods = [Endpoint("127.0.0.1", port) for port in (1, 2)]
    line, _ = new_line(pods, concurrency=2)
    over, most = asyncio.Event(), 0

    async def request() -> None:
        nonlocal most
        async with line.admit() as endpoint:
            most = max(most, line.running(endpoint))
            await over.wait()

    tasks = [asyncio.create_task(request()) for _ in range(7)]
    await asyncio.sleep(0)
    assert [line.running(each) for each in pods] == [2, 2]
    over.set()
    await asyncio.gather(*tasks)
    assert most == 2


async def test_a_full_line_takes_nobody():
    line, _ = new_line([], longest=1)

    async def request() -> None:
        async with line.admit():
            pass

    waiting = asyncio.create_task(request())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="1 requests wait for ns/rev already"):
        await request()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert line.demand.under_way == 0


async def test_who_waits_too_long_is_told_so():
    line, _ = new_line([])
    line.timeout = 0.01
    with pytest.raises(Unavailable, match=r"no pod of ns/rev took the request within 0.01 s"):
        async with line.admit():
            pass


async def test_who_waits_for_what_is_deleted_is_told_so_at_once():
    line, _ = new_line([])

    async def request() -> None:
        async with line.admit():
            pass

    waiting = [asyncio.create_task(request()) for _ in range(2)]
    await asyncio.sleep(0)
    line.give_up(f"{line.key} was deleted while the request waited for a pod")
    said = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(each, Unavailable) and "was deleted" in each.reason for each in said)
    assert line.demand.under_way == 0
    assert not line.has_waiting


async def test_a_client_that_leaves_frees_its_place():
    pods = [Endpoint("127.0.0.1", 1)]
    line, _ = new_line(pods, concurrency=1)
    over = asyncio.Event()

    async def request() -> str:
        async with line.admit():
            await over.wait()
        return "served"

    tasks = [asyncio.create_task(request()) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    tasks[0].cancel()
    await asyncio.sleep(0)
    over.set()
    assert await tasks[2] == "served"
    assert line.running(pods[0]) == 0


async def test_what_goes_to_pods_without_asking_is_counted_apart_from_what_is_held():
    line, _ = new_line([Endpoint("127.0.0.1", 1)])
    line.observe(Traffic(ended=10, seconds=1.0, active=3))
    async with line.admit():
        line.observe(Traffic(ended=12, seconds=1.5, active=3))  # one of them is ours
        assert line.demand.under_way == 3
    line.observe(Traffic(ended=12, seconds=1.5, active=0))
    assert line.demand.under_way == 0
    line.observe(Traffic(ended=1, seconds=0.5, active=0))  # of another Envoy
    assert line.demand.rate(SystemClock().monotonic(), 60) * 60 >= 14
