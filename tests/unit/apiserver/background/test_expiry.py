from __future__ import annotations

from tests.unit.apiserver.conftest import NAMESPACES

from isvc.apiserver.background.expiry import LIFETIME_SECONDS, EventExpiry

EVENTS = f"{NAMESPACES}/default/events"


async def test_events_live_for_an_hour_after_their_last_write(http):
    now = [0.0]
    expiry = EventExpiry(http.server.api, lambda: now[0])
    target = {"kind": "Pod", "name": "p", "namespace": "default"}
    await http.create(EVENTS, metadata={"name": "old"}, involvedObject=target)
    await http.create(EVENTS, metadata={"name": "renewed"}, involvedObject=target)
    now[0] = LIFETIME_SECONDS - 1
    await http.patch(f"{EVENTS}/renewed", {"count": 2})
    await expiry.sweep()
    assert len(http.server.store.list("events")) == 2
    now[0] = LIFETIME_SECONDS + 1
    await expiry.sweep()
    assert [entry.name for entry in http.server.store.list("events")] == ["renewed"]
    expiry.stop()
