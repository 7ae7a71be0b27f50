from __future__ import annotations

from tests.manual_clock import ManualClock

from isvc.kube.resource import CONFIG_MAPS, EVENTS
from isvc.toolkit.recorder import Recorder


class Counting:
    """Counts requests of a client."""

    def __init__(self, client) -> None:
        self.requests: list[str] = []
        client.observe(lambda method, status: self.requests.append(method))


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
