"""Requests that wait for a pod: Envoy asks about them, and takes them on when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiohttp
import pytest
import pytest_asyncio
from tests.ports import free_port
from tests.unit.local.gateway.raw import named
from tests.unit.local.gateway.test_endpoint_picker import pod
from tests.waiting import until

from isvc.kube.objects import Key, Object
from isvc.kube.resource import PODS
from isvc.local.gateway.backends import service_cluster
from isvc.local.gateway.processor.messages import Question
from isvc.local.gateway.routes.rules import Target
from isvc.local.gateway.traffic import Traffic
from isvc.local.knative.activator import Line
from isvc.serving.thirdparty import INFERENCE_POOLS
from isvc.toolkit.clock import SystemClock

REVISION = Key("default", "s")


@pytest_asyncio.fixture(loop_scope="session")
async def line(gateway):
    """The line of a revision without pods, which a test may limit."""
    backends = gateway.gateway.backends
    made = Line(
        REVISION, lambda: backends.members(service_cluster(REVISION, 80)).ready, SystemClock(), lambda key: None
    )
    gateway.gateway.processor.line_of = {Target(REVISION): made}.get
    gateway.gateway.backends.is_limited = lambda key: key == REVISION and made.is_limited
    gateway.gateway.backends.comes_back = Target(REVISION).__eq__
    gateway.gateway.publisher.on_endpoints = lambda targets: made.advance()
    await gateway.service("s")
    await gateway.route("h.test", ("s", 1))
    yield made
    gateway.gateway.backends.is_limited = lambda key: False
    gateway.gateway.backends.comes_back = lambda target: False


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


async def test_more_requests_wait_than_one_connection_carries_and_leave_nothing_behind(gateway, sites, line):
    waiting, leaving = 250, 150  # grpclib takes 100 streams a connection
    url, headers = f"http://127.0.0.1:{gateway.port}", {"Host": "h.test"}
    async with aiohttp.ClientSession(url, headers=headers, connector=aiohttp.TCPConnector(limit=0)) as session:
        asked = [asyncio.create_task(session.post("/", data=b"x" * 100_000)) for _ in range(waiting)]
        await until(lambda: line.demand.under_way == waiting, "all in line")
        for each in asked[:leaving]:
            each.cancel()
        await until(lambda: line.demand.under_way == waiting - leaving, "those that left are out of line")
        await gateway.service("s", (await sites(named("served")), True))
        assert {await (await each).text() for each in asked[leaving:]} == {"served"}
    await until(lambda: line.demand.under_way == 0, "all served")


@pytest.mark.parametrize("name", ["modèle", "模型", "100%25-%REQ(x)%", r"a\xe8"])
async def test_a_backend_may_be_named_by_anything(gateway, name):
    await gateway.route("h.test", (name, 1))
    answer = await gateway.session.get("/")
    assert (answer.status, name in (await answer.json())["error"]) == (500, True)


async def test_a_request_on_its_way_to_a_pod_that_died_is_answered_by_the_next(gateway, sites, line):
    async def has_refused(endpoint: str) -> bool:
        """Whether Envoy has tried to connect there."""
        told = (await gateway.gateway.admin.get("/clusters")).decode()
        return any(
            f"::{endpoint}::cx_connect_fail::" in text and not text.endswith("::0") for text in told.splitlines()
        )

    dead = free_port()
    await gateway.service("s", (dead, True))
    asked = asyncio.create_task(gateway.session.post("/", data=b"x" * 100_000))
    async with asyncio.timeout(60):
        while not await has_refused(f"127.0.0.1:{dead}"):
            await asyncio.sleep(0)
        await gateway.service("s")
        while not await has_refused("nobody.sock"):
            await asyncio.sleep(0)
        await gateway.service("s", (await sites(named("served")), True), (dead, False))
        assert await (await asked).text() == "served"


async def test_a_request_that_is_faster_than_its_route_is_routed_when_that_is_there(gateway, sites, monkeypatch):
    """Who was told that a service is ready may ask before Envoy has heard of its route."""
    await gateway.service("s", (await sites(named("served")), True))
    publisher, waits, served = gateway.gateway.publisher, asyncio.Event(), asyncio.Event()

    class Late:
        is_behind = True

        async def wait_until_published(self) -> None:
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


async def test_a_route_that_came_since_envoy_asked_is_taken(gateway, sites, monkeypatch):
    await gateway.service("s", (await sites(named("served")), True))
    processor, asked = gateway.gateway.processor, asyncio.Event()
    is_routed, came = processor._is_routed_now, asyncio.Event()

    async def ask_late(question: Question) -> bool:
        asked.set()
        await came.wait()
        return await is_routed(question)

    monkeypatch.setattr(processor, "_is_routed_now", ask_late)
    request = asyncio.create_task(gateway.session.get("/"))
    async with asyncio.timeout(60):
        await asked.wait()
        await gateway.route("h.test", ("s", 1))
        await gateway.gateway.publisher.wait_until_published()
        came.set()
        assert await (await request).text() == "served"


async def test_a_request_for_a_ready_service_waits_for_the_route_that_nobody_here_has_seen_yet(
    gateway, sites, monkeypatch
):
    """Who was told that a service is ready may ask before the gateway has heard of its route."""
    await gateway.service("s", (await sites(named("served")), True))
    asked_about = asyncio.Event()

    async def state(host: str, path: str) -> str | None:
        asked_about.set()
        return {"h.test": "", "starting.test": "it is starting"}.get(host)

    monkeypatch.setattr(gateway.gateway.processor, "_why_unready", state)
    asked = asyncio.create_task(gateway.session.post("/", data=b"x" * 100_000))
    await asyncio.wait_for(asked_about.wait(), 60)
    rule = {"backendRefs": [{"name": "s", "port": 80}]}
    await gateway.http_route(["other.test"], [rule], "other")  # which is not the one that it waits for
    await gateway.http_route(["h.test"], [rule])
    assert await (await asked).text() == "served"
    for host, status, words in (
        ("starting.test", 503, "it is starting"),
        ("nobody.test", 404, "no route for host nobody.test"),
    ):
        answer = await gateway.session.get("/", headers={"Host": host})
        assert (answer.status, (await answer.json())["error"]) == (status, words)


async def ask_ready_service(gateway, monkeypatch) -> asyncio.Task:
    """Returns a request under way, when the gateway has looked whether the service is ready that it cannot reach."""
    asked_about = asyncio.Event()

    async def state(host: str, path: str) -> str | None:
        asked_about.set()
        return ""

    monkeypatch.setattr(gateway.gateway.processor, "_why_unready", state)
    asked = asyncio.create_task(gateway.session.post("/", data=b"x" * 100_000))
    await asyncio.wait_for(asked_about.wait(), 60)
    return asked


async def test_a_request_for_a_ready_service_waits_for_endpoints_that_nobody_here_has_seen_yet(
    gateway, sites, monkeypatch
):
    await gateway.service("s")
    await gateway.route("h.test", ("s", 1))
    asked = await ask_ready_service(gateway, monkeypatch)
    await gateway.service("s", (await sites(named("served")), True))
    assert await (await asked).text() == "served"


@pytest.fixture
def empty_pool(gateway) -> Iterator[Object]:
    """A reference to an InferencePool without pods, which Envoy knows."""
    target = Target(Key("default", "old"), INFERENCE_POOLS)
    spec = {"selector": {"matchLabels": {"app": "llm"}}, "targetPorts": [{"number": 8000}]}
    gateway.put(INFERENCE_POOLS, {"metadata": {"name": "old", "namespace": "default"}, "spec": spec})
    gateway.gateway.backends.mark_changed(target)
    yield {"group": INFERENCE_POOLS.group, "kind": INFERENCE_POOLS.kind, "name": "old"}
    gateway.remove(INFERENCE_POOLS, "old", "default")
    gateway.gateway.backends.mark_changed(target)


async def test_a_request_for_a_pod_of_a_pool_that_envoy_has_not_heard_of_waits_for_that(
    gateway, sites, monkeypatch, empty_pool
):
    """The pods are seen here first, and whoever reads that the service is ready asks at once."""
    await gateway.http_route(["h.test"], [{"backendRefs": [empty_pool]}])
    publisher, waits, heard = gateway.gateway.publisher, asyncio.Event(), asyncio.Event()
    published = publisher.wait_until_published

    async def published_late() -> None:
        waits.set()
        await heard.wait()
        await published()

    monkeypatch.setattr(publisher, "wait_until_published", published_late)
    gateway.put(PODS, pod("first", await sites(named("served"))))
    asked = asyncio.create_task(gateway.session.post("/", data=b"{}"))
    await asyncio.wait_for(waits.wait(), 60)
    gateway.gateway.backends.mark_changed(Target(Key("default", "old"), INFERENCE_POOLS))
    publisher.mark_changed()
    heard.set()
    assert await (await asked).text() == "served"
    gateway.remove(PODS, "first", "default")


@pytest.mark.parametrize("of", ["Service", "InferencePool"])
async def test_a_request_that_is_held_for_a_route_that_changes_goes_by_the_new_one(
    gateway, sites, monkeypatch, empty_pool, of
):
    await gateway.service("empty")
    await gateway.service("new", (await sites(named("served")), True))
    old = empty_pool if of == "InferencePool" else {"name": "empty", "port": 80}
    await gateway.http_route(["h.test"], [{"backendRefs": [old]}])
    asked = await ask_ready_service(gateway, monkeypatch)
    await gateway.route("h.test", ("new", 1))
    assert await (await asked).text() == "served"
    assert (await gateway.session.get("/", headers={"x-isvc-moved": "1"})).status == 200  # which nobody else can say


@pytest.mark.parametrize("when", ["before Envoy is told to look again", "after it"])
async def test_a_request_that_is_held_for_what_is_deleted_piece_by_piece_is_told_so(gateway, line, monkeypatch, when):
    processor, published = gateway.gateway.processor, gateway.published
    asked = asyncio.create_task(gateway.session.post("/", data=b"x" * 100_000))
    await until(lambda: line.demand.under_way == 1, "it is in line")
    await gateway.route("h.test", ("left", 1))
    if when == "after it":
        monkeypatch.setattr(processor, "_has_moved", lambda question: True)

    class Deleting:
        async def wait_until_published(self) -> None:
            gateway.gateway.table.put_http_route(Key("default", "r"), None, ())
            await published()

    monkeypatch.setattr(processor, "_publisher", Deleting())
    line.give_up(f"{line.key} was deleted while the request waited for a pod")
    answer = await asked
    assert answer.status == 503
    assert "was deleted while the request waited" in (await answer.json())["error"]
