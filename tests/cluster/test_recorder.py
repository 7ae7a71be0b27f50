from __future__ import annotations

import asyncio

import pytest
from tests.cluster.faulty_proxy import FaultyProxy
from tests.manual_clock import ManualClock
from tests.waiting import until

from isvc.kube.resource import CONFIG_MAPS, EVENTS
from isvc.toolkit.client import Client
from isvc.toolkit.failure import NotLeader
from isvc.toolkit.recorder import Recorder


class Counting:
    """Counts requests of a client."""

    def __init__(self, client) -> None:
        self.requests: list[str] = []
        client.observe(lambda answer: self.requests.append(answer.method))


async def subject(client, namespace: str) -> dict:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": namespace}}
    return await client.create(CONFIG_MAPS, manifest)


async def test_an_event_costs_one_request_and_repeats_raise_its_count(client, namespace):
    clock = ManualClock()
    it = await subject(client, namespace)
    recorder = Recorder(client, "tester", clock)
    counting = Counting(client)
    recorder.event(it, "Normal", "Created", "made it")
    await recorder.flush()
    assert counting.requests == ["POST"]
    for _ in range(5):
        recorder.event(it, "Normal", "Created", "made it")
    await recorder.flush()
    assert counting.requests == ["POST", "PATCH"]
    [event] = (await client.list(EVENTS, namespace)).items
    assert event["count"] == 6
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Created", "made it")
    assert event["involvedObject"]["uid"] == it["metadata"]["uid"]
    assert event["source"] == {"component": "tester"}


async def test_after_the_window_a_new_event_begins(client, namespace):
    clock = ManualClock()
    it = await subject(client, namespace)
    recorder = Recorder(client, "tester", clock)
    for _ in range(2):
        recorder.event(it, "Warning", "Failed", "no luck")
        await recorder.flush()
        clock.advance(601)
    events = (await client.list(EVENTS, namespace)).items
    assert [event["count"] for event in events] == [1, 1]


async def test_an_event_that_the_server_forgot_is_written_anew(client, namespace):
    it = await subject(client, namespace)
    recorder = Recorder(client, "tester")
    recorder.event(it, "Normal", "Created", "made it")
    await recorder.flush()
    [event] = (await client.list(EVENTS, namespace)).items
    await client.delete(EVENTS, event["metadata"]["name"], namespace)
    recorder.event(it, "Normal", "Created", "made it")
    await recorder.flush()
    [event] = (await client.list(EVENTS, namespace)).items
    assert event["count"] == 2


async def test_an_event_that_cannot_be_written_troubles_nobody(client):
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it", "namespace": "no-such-namespace"}}
    recorder = Recorder(client, "tester")
    recorder.event(ghost, "Normal", "Created", "made it")
    await recorder.flush()
    await recorder.stop()


class Proxied:
    """A recorder whose way to the API server can be blocked."""

    def __init__(self, proxy: FaultyProxy) -> None:
        self.proxy = proxy
        self.client = Client.connect(proxy.config)
        self.dropped: list[str] = []
        self.recorder = Recorder(self.client, "tester", on_drop=self.dropped.append)


@pytest.fixture
async def proxied(cluster):
    async with FaultyProxy(cluster) as proxy:
        proxied = Proxied(proxy)
        yield proxied
        await proxied.client.close()


def objects(namespace: str, number: int) -> list[dict]:
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"it-{each}", "namespace": namespace}}
        for each in range(number)
    ]


async def test_no_event_of_a_burst_is_lost(client, namespace):
    dropped: list[str] = []
    recorder = Recorder(client, "tester", on_drop=dropped.append)
    for obj in objects(namespace, 1500):
        recorder.event(obj, "Normal", "Ready", "is ready")
    await recorder.flush()
    events = (await client.list(EVENTS, namespace)).items
    assert {event["involvedObject"]["name"] for event in events} == {f"it-{each}" for each in range(1500)}
    assert len(events) == 1500
    assert dropped == []


async def test_events_outlive_an_api_server_that_is_away(proxied, client, namespace):
    proxied.proxy.away = True
    for _ in range(3):
        for obj in objects(namespace, 20):
            proxied.recorder.event(obj, "Normal", "Ready", "is ready")
    await until(lambda: proxied.proxy.writes, "it tries")
    proxied.proxy.away = False
    await proxied.recorder.flush()
    events = (await client.list(EVENTS, namespace)).items
    assert [event["count"] for event in events] == [3] * 20
    assert proxied.dropped == []


async def test_events_of_one_object_at_the_same_moment_have_names_of_their_own(client, namespace):
    it = await subject(client, namespace)
    recorder = Recorder(client, "tester", ManualClock())
    for number in range(20):
        recorder.event(it, "Normal", "Step", f"step {number}")
    await recorder.flush()
    assert len((await client.list(EVENTS, namespace)).items) == 20


async def test_events_may_come_from_several_components(client, namespace):
    it = await subject(client, namespace)
    recorder = Recorder(client, "tester")
    recorder.for_component("other").event(it, "Normal", "Done", "done")
    recorder.event(it, "Normal", "Done", "done")
    await recorder.flush()
    events = (await client.list(EVENTS, namespace)).items
    assert {event["source"]["component"] for event in events} == {"tester", "other"}


async def test_what_is_lost_is_counted(client, namespace, proxied, monkeypatch):
    ghosts = objects("no-such-namespace", 2)
    for ghost in ghosts:
        proxied.recorder.event(ghost, "Normal", "Created", "made it")
    await proxied.recorder.flush()
    assert proxied.dropped == ["refused", "refused"]
    monkeypatch.setattr("isvc.toolkit.recorder.MOST_WAITING", 3)
    monkeypatch.setattr("isvc.toolkit.recorder.FLUSH_SECONDS", 0)
    proxied.proxy.away = True
    for obj in objects(namespace, 5):
        proxied.recorder.event(obj, "Normal", "Ready", "is ready")
    await proxied.recorder.stop()
    assert sorted(proxied.dropped[2:]) == ["queue_full", "queue_full", "shutdown", "shutdown", "shutdown"]


async def test_who_no_longer_leads_still_says_what_it_did(client, namespace):
    """Reconciles end before the lease is released, and their events are often still to be written."""

    def fence() -> None:
        raise NotLeader("the lease is not ours")

    dropped: list[str] = []
    recorder = Recorder(client, "tester", on_drop=dropped.append)
    client.guard(fence)
    try:
        for obj in objects(namespace, 20):
            recorder.event(obj, "Normal", "Ready", "is ready")
        await asyncio.sleep(0)  # the first are refused
        await recorder.stop()
    finally:
        client.guard(None)
    assert len((await client.list(EVENTS, namespace)).items) == 20
    assert dropped == []
