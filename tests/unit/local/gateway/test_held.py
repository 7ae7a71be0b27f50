"""Requests that wait for a pod: Envoy asks about them, and takes them on when it is told to."""

from __future__ import annotations

import asyncio

import pytest_asyncio
from tests.unit.local.gateway.raw import named
from tests.waiting import until

from isvc.kube.objects import Key
from isvc.local.gateway.backends import service_cluster
from isvc.local.gateway.traffic import Traffic
from isvc.local.knative.activator import Line
from isvc.toolkit.clock import SystemClock

REVISION = Key("default", "s")


@pytest_asyncio.fixture(loop_scope="session")
async def line(gateway):
    """The line of a revision without pods, which a test may limit."""
    backends = gateway.gateway.backends
    made = Line(
        REVISION, lambda: backends.members(service_cluster(REVISION, 80)).ready, SystemClock(), lambda key: None
    )
    gateway.gateway.processor.line_of = {REVISION: made}.get
    gateway.gateway.backends.is_limited = lambda key: key == REVISION and made.is_limited
    gateway.gateway.publisher.on_endpoints = lambda keys: made.advance()
    await gateway.service("s")
    await gateway.route("h.test", ("s", 1))
    yield made
    gateway.gateway.backends.is_limited = lambda key: False


async def test_a_request_waits_for_the_first_pod_and_the_next_one_does_not_ask(gateway, sites, line):
    before = (await gateway.gateway.traffic()).get(REVISION, Traffic())
    waiting = [asyncio.create_task(gateway.session.post("/", data=b"x" * 100_000)) for _ in range(5)]
    await until(lambda: line.demand.under_way == 5, "all in line")
    await gateway.service("s", (await sites(named("served")), True))
    for answer in await asyncio.gather(*waiting):
        assert await answer.text() == "served"
    await until(lambda: line.demand.under_way == 0, "all served", within=5)
    assert await (await gateway.session.get("/")).text() == "served"
    traffic = (await gateway.gateway.traffic())[REVISION].since(before)
    assert (traffic.ended, traffic.active) == (1, 0)  # that one; the others were counted here


async def test_a_request_that_is_faster_than_its_route_is_routed_when_that_is_there(gateway, sites, monkeypatch):
    """Who was told that a service is ready may ask before Envoy has heard of its route."""
    await gateway.service("s", (await sites(named("served")), True))
    publisher, waits, served = gateway.gateway.publisher, asyncio.Event(), asyncio.Event()

    class Late:
        is_behind = True

        async def published(self) -> None:
            waits.set()
            await served.wait()

    monkeypatch.setattr(gateway.gateway.processor, "_publisher", Late())
    asked = asyncio.create_task(gateway.session.post("/", data=b"x" * 100_000))
    async with asyncio.timeout(60):
        await waits.wait()
        await gateway.route("h.test", ("s", 1))
        served.set()
        assert await (await asked).text() == "served"
        stranger = await gateway.session.get("/", headers={"Host": "other.test"})  # and nobody goes round for ever
        assert stranger.status == 404
    assert not publisher.is_behind
