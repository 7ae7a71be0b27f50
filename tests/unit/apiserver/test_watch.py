from __future__ import annotations

import asyncio
import socket
import ssl

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.apiserver.conftest import CONFIG_MAPS, NAMESPACES, Http


async def test_a_watch_tells_the_state_and_then_every_change(http):
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    watch = await http.watch(CONFIG_MAPS)
    assert await watch.take(1) == [("ADDED", "a")]
    await http.create(CONFIG_MAPS, metadata={"name": "b"})
    await http.patch(f"{CONFIG_MAPS}/b", {"data": {"k": "v"}})
    await http.ask("DELETE", f"{CONFIG_MAPS}/b")
    assert await watch.take(3) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]
    watch.close()


async def test_a_watch_goes_on_from_a_revision(http):
    first = await http.create(CONFIG_MAPS, metadata={"name": "a"})
    await http.create(CONFIG_MAPS, metadata={"name": "b"})
    await http.ask("DELETE", f"{CONFIG_MAPS}/a")
    watch = await http.watch(CONFIG_MAPS, resourceVersion=first["metadata"]["resourceVersion"])
    assert await watch.take(2) == [("ADDED", "b"), ("DELETED", "a")]
    watch.close()


@pytest.mark.parametrize("accept", ["application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"])
@pytest.mark.parametrize("revision", ["1", "999999"])
async def test_what_is_forgotten_or_of_another_life_has_expired(http, revision, accept):
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    http.server.store.compact(http.server.store.rv)
    http.session.headers["Accept"] = accept
    watch = await http.watch(CONFIG_MAPS, resourceVersion=revision)
    event = await watch.next()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    assert await watch.next() is None


async def test_objects_come_and_go_as_their_labels_match(http):
    watch = await http.watch(CONFIG_MAPS, labelSelector="on=yes")
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    await http.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": "yes"}}})
    await http.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "v"}})
    off = (await http.patch(f"{CONFIG_MAPS}/a", {"metadata": {"labels": {"on": "no"}}})).body
    events = [await watch.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    last = events[-1]["object"]["metadata"]
    assert last["labels"] == {"on": "yes"}
    assert last["resourceVersion"] == off["metadata"]["resourceVersion"]
    watch.close()


async def test_one_object_and_one_namespace(http):
    await http.create(NAMESPACES, metadata={"name": "other"})
    one = await http.watch(CONFIG_MAPS, fieldSelector="metadata.name=b")
    here = await http.watch(CONFIG_MAPS)
    everywhere = await http.watch("/api/v1/configmaps")
    await http.create(f"{NAMESPACES}/other/configmaps", metadata={"name": "a"})
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    await http.create(CONFIG_MAPS, metadata={"name": "b"})
    assert await one.take(1) == [("ADDED", "b")]
    assert await here.take(2) == [("ADDED", "a"), ("ADDED", "b")]
    assert await everywhere.take(3) == [("ADDED", "a"), ("ADDED", "a"), ("ADDED", "b")]
    for watch in (one, here, everywhere):
        watch.close()


async def test_initial_events_end_with_a_bookmark(http):
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    watch = await http.watch(CONFIG_MAPS, **options)
    assert await watch.take(1) == [("ADDED", "a")]
    end = await watch.next()
    assert end["type"] == "BOOKMARK"
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(end["object"]["metadata"]["resourceVersion"]) == http.server.store.rv
    watch.close()
    refused = await http.ask("GET", f"{CONFIG_MAPS}?watch=true&sendInitialEvents=true")
    assert refused.code == 422


async def test_bookmarks_come_now_and_then(http, monkeypatch):
    monkeypatch.setattr("isvc.apiserver.verbs.watch.BOOKMARK_SECONDS", 0.05)
    watch = await http.watch(CONFIG_MAPS, allowWatchBookmarks="true", resourceVersion=str(http.server.store.rv))
    await http.create(NAMESPACES, metadata={"name": "elsewhere"})
    seen = ""
    while seen != str(http.server.store.rv):
        event = await watch.next()
        assert event["type"] == "BOOKMARK"
        seen = event["object"]["metadata"]["resourceVersion"]
    watch.close()


async def test_nonsense_is_refused_before_the_stream_begins(http):
    for query in ("timeoutSeconds=x", "labelSelector=a%3D%3D%3Db", "fieldSelector=spec.x%3D1"):
        assert (await http.ask("GET", f"{CONFIG_MAPS}?watch=true&{query}")).code == 400, query


async def test_a_watch_ends_when_its_time_is_up(http):
    watch = await http.watch(CONFIG_MAPS, timeoutSeconds="1")
    assert await asyncio.wait_for(watch.next(), 30) is None


async def test_events_are_shared_between_many_watchers_and_arrive_in_order(http):
    watches = [await http.watch(CONFIG_MAPS) for _ in range(20)]
    await asyncio.gather(*(http.create(CONFIG_MAPS, metadata={"name": f"o{n}"}) for n in range(50)))
    received = [await watch.take(50) for watch in watches]
    assert all(each == received[0] for each in received)
    for watch in watches:
        watch.close()


async def stalled_watch(http) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A watch whose client reads nothing but the head of the answer, with as small a buffer as the kernel allows."""
    host, _, port = http.server.url.removeprefix("https://").partition(":")
    receiver = socket.socket()
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    receiver.setblocking(False)
    await asyncio.get_running_loop().sock_connect(receiver, (host, int(port)))
    reader, writer = await asyncio.open_connection(
        sock=receiver, ssl=ssl._create_unverified_context(), server_hostname=host, limit=4096
    )
    token = f"Authorization: Bearer {http.server.identity.admin_token}"
    writer.write(f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: {host}\r\n{token}\r\n\r\n".encode())
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    return reader, writer


async def watches(http) -> float:
    samples = text_string_to_metric_families((await http.ask("GET", "/metrics")).text)
    return sum(s.value for each in samples for s in each.samples if s.name == "apiserver_longrunning_requests")


async def fall_behind(http) -> int:
    """Changes an object until no watch is left; how often."""
    await http.create(CONFIG_MAPS, metadata={"name": "big"}, data={"k": "x" * (200 << 10)})
    for n in range(1000):
        if not await watches(http):
            return n
        await http.patch(f"{CONFIG_MAPS}/big", {"data": {"n": str(n)}})
    raise AssertionError("a client that does not read is never cut off")


async def test_a_client_that_does_not_read_is_cut_off(http, monkeypatch):
    monkeypatch.setattr("isvc.apiserver.verbs.watch.MAX_QUEUED_BYTES", 1 << 20)
    reader, writer = await stalled_watch(http)
    changes = await fall_behind(http)
    events = b""
    while not events.endswith(b"\r\n0\r\n\r\n"):
        piece = await asyncio.wait_for(reader.read(1 << 20), 60)
        assert piece, "the stream ends in the middle"
        events += piece
    assert events.count(b'{"type":"ADDED"') == 1
    assert 0 < events.count(b'{"type":"MODIFIED"') < changes
    writer.close()


async def test_a_client_that_does_not_read_leaves_others_in_peace(http, monkeypatch):
    monkeypatch.setattr("isvc.apiserver.verbs.watch.MAX_QUEUED_BYTES", 1 << 20)
    _, writer = await stalled_watch(http)
    await fall_behind(http)
    watch = await http.watch(CONFIG_MAPS)
    await http.create(CONFIG_MAPS, metadata={"name": "later"})
    assert await watch.take(2) == [("ADDED", "big"), ("ADDED", "later")]
    watch.close()
    writer.transport.abort()


async def test_a_client_that_pauses_misses_nothing(http):
    """Neither of a state that is larger than what may be on its way, nor of what happens meanwhile."""
    big = "x" * (400 << 10)
    for n in range(12):
        await http.create(CONFIG_MAPS, metadata={"name": f"c{n}"}, data={"k": big})
    watch = await http.watch(CONFIG_MAPS)
    for n in range(12):
        await http.patch(f"{CONFIG_MAPS}/c{n}", {"data": {"n": str(n)}})
    added, modified = await watch.take(12), await watch.take(12)
    assert {kind for kind, _ in added} == {"ADDED"}
    assert {kind for kind, _ in modified} == {"MODIFIED"}
    assert [name for _, name in modified] == [f"c{n}" for n in range(12)]
    await http.create(CONFIG_MAPS, metadata={"name": "later"})
    assert await watch.take(1) == [("ADDED", "later")]
    watch.close()


async def test_a_watch_through_a_websocket(http):
    url = f"{http.server.url}{CONFIG_MAPS}"
    async with http.session.ws_connect(url, params={"watch": "true", "timeoutSeconds": "30"}) as socket:
        await http.create(CONFIG_MAPS, metadata={"name": "a"})
        event = await socket.receive_json()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
        await http.ask("DELETE", f"{CONFIG_MAPS}/a")
        assert (await socket.receive_json())["type"] == "DELETED"
    async with http.session.ws_connect(url, params={"watch": "true", "timeoutSeconds": "1"}) as socket:
        assert (await socket.receive()).type == aiohttp.WSMsgType.CLOSE


async def test_a_watch_resumes_after_a_restart(start, connect):
    server = await start()
    async with connect(server) as session:
        http = Http(server, session)
        seen = await http.create(CONFIG_MAPS, metadata={"name": "a"})
        await http.create(CONFIG_MAPS, metadata={"name": "b"})
        await http.ask("DELETE", f"{CONFIG_MAPS}/a")
    await server.stop()
    again = await start()
    async with connect(again) as session:
        watch = await Http(again, session).watch(CONFIG_MAPS, resourceVersion=seen["metadata"]["resourceVersion"])
        assert await watch.take(2) == [("ADDED", "b"), ("DELETED", "a")]
        watch.close()
    await again.stop()


async def test_watches_end_when_the_server_stops(start, connect):
    server = await start(ephemeral=True)
    async with connect(server) as session:
        watch = await Http(server, session).watch(CONFIG_MAPS)
        await server.stop()
        assert await asyncio.wait_for(watch.next(), 60) is None


async def test_the_old_form_of_a_watch(http):
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    await http.create(CONFIG_MAPS, metadata={"name": "b"})
    old = CONFIG_MAPS.replace("/api/v1/", "/api/v1/watch/")
    for path, names in ((old, ["a", "b"]), (f"{old}/b", ["b"])):
        watch = await http.watch(path)
        assert await watch.take(len(names)) == [("ADDED", name) for name in names]
        watch.close()


async def test_a_list_that_is_to_be_watched_from_the_future_times_out(http):
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "999999"}
    watch = await http.watch(CONFIG_MAPS, **options)
    event = await watch.next()
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 504, "Timeout")
    assert event["object"]["message"].startswith("Timeout: Too large resource version: 999999, current: ")


async def test_a_revision_of_thousands_of_digits_is_refused(http):
    answer = await http.ask("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion={'9' * 5_000}")
    assert (answer.code, "invalid syntax" in answer.message) == (500, True)
