from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tracemalloc
from typing import Any

import pytest

from isvc.apiserver.store import store as module
from isvc.apiserver.store.entry import Entry
from isvc.apiserver.store.lock import FolderLock, InUse
from isvc.apiserver.store.log import Row, Unusable
from isvc.apiserver.store.store import Stale, Store
from isvc.kube.errors import Gone, InternalError

COLLECTION = "configmaps"


def obj(name: str, value: str = "", **labels: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "ns", "uid": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"value": value}}


async def put(store: Store, name: str, value: str = "", **labels: str) -> Any:
    return await store.put(COLLECTION, "ns", name, obj(name, value, **labels), store.latest(COLLECTION, "ns", name))


def head(store: Store, name: str) -> Entry:
    found = store.latest(COLLECTION, "ns", name)
    assert found is not None
    return found


def database_of(store: Store) -> sqlite3.Connection:
    assert store._log is not None
    return store._log._db


def values(store: Store, at: int | None = None) -> dict[str, str]:
    return {entry.name: entry.parse()["data"]["value"] for entry in store.list(COLLECTION, at=at)}


def history(store: Store) -> list[tuple[int, str, str, str]]:
    """What is remembered: revisions, types, values, and the values before."""
    return [(event.rv, event.type, value(event.entry), value(event.old)) for event in store.since(store.compacted)]


def value(entry: Entry | None) -> str:
    return entry.parse()["data"]["value"].strip() if entry else ""


@pytest.fixture(params=["memory", "folder"])
async def store(request, tmp_path):
    store = Store(tmp_path if request.param == "folder" else None)
    yield store
    store.close()


async def test_revisions_grow_and_are_written_into_the_object(store):
    first = await put(store, "a")
    second = await put(store, "b")
    assert second.rv > first.rv
    assert first.parse()["metadata"]["resourceVersion"] == str(first.rv)
    assert store.rv == second.rv


async def test_two_writers_that_saw_the_same_revision_cannot_both_win(store):
    base = await put(store, "a", "0")
    outcomes = await asyncio.gather(
        *(store.put(COLLECTION, "ns", "a", obj("a", str(n)), base) for n in range(5)), return_exceptions=True
    )
    won = [each for each in outcomes if not isinstance(each, Exception)]
    assert len(won) == 1
    assert all(isinstance(each, Stale) for each in outcomes if isinstance(each, Exception))
    assert store.get(COLLECTION, "ns", "a") is won[0]


async def test_a_write_is_not_read_before_it_is_on_disk(tmp_path):
    store = Store(tmp_path)
    writing = asyncio.ensure_future(put(store, "a"))
    await asyncio.sleep(0)
    assert store.get(COLLECTION, "ns", "a") is None
    assert store.latest(COLLECTION, "ns", "a") is not None
    await writing
    assert store.get(COLLECTION, "ns", "a") is not None
    store.close()


async def test_events_are_told_in_order_with_what_was_before(store):
    seen = []
    stop = store.subscribe(COLLECTION, lambda event: seen.append((event.type, event.entry.name, event.old is not None)))
    await put(store, "a")
    await put(store, "a", "1")
    await store.remove(head(store, "a"), obj("a", "1"))
    stop()
    await put(store, "b")
    assert seen == [("ADDED", "a", False), ("MODIFIED", "a", True), ("DELETED", "a", True)]


async def test_the_past_can_be_listed_until_it_is_compacted(store):
    first = await put(store, "a", "1")
    await put(store, "a", "2")
    await put(store, "b", "1")
    await store.remove(head(store, "a"), obj("a", "2"))
    assert values(store) == {"b": "1"}
    assert values(store, at=first.rv) == {"a": "1"}
    assert values(store, at=first.rv + 1) == {"a": "2"}
    store.compact(first.rv + 1)
    assert values(store, at=first.rv + 1) == {"a": "2"}
    with pytest.raises(Gone):
        store.list(COLLECTION, at=first.rv)
    with pytest.raises(Gone):
        store.since(first.rv)
    assert [event.type for event in store.since(first.rv + 1)] == ["ADDED", "DELETED"]


async def test_superseded_revisions_are_read_back_from_the_log_and_not_kept_in_memory(tmp_path):
    store = Store(tmp_path)
    first = await put(store, "a", "first", app="x")
    tracemalloc.start()
    try:
        for n in range(100):
            await put(store, "a", str(n).rjust(20_000), app="y")
        assert tracemalloc.get_traced_memory()[0] < 500_000, "2 MB were written"
    finally:
        tracemalloc.stop()
    told = list(store.since(first.rv, COLLECTION))
    assert [value(event.entry) for event in told] == [str(n) for n in range(100)]
    assert (value(told[0].old), told[0].old and told[0].old.labels) == ("first", {"app": "x"})
    assert list(store.since(first.rv, "secrets")) == []
    store.close()


async def test_who_reads_the_past_while_it_is_compacted_has_to_list_again():
    store = Store()
    first = await put(store, "a", "1")
    for n in range(3):
        await put(store, "a", str(n))
    events = store.since(first.rv)
    assert value(next(events).entry) == "0"
    store.compact(store.rv)
    with pytest.raises(Gone):
        next(events)


async def test_the_window_compacts_itself(store, monkeypatch):
    monkeypatch.setattr(module, "MAX_EVENTS", 10)
    for n in range(30):
        await put(store, "a", str(n))
    assert store.compacted > 0
    assert len(list(store.since(store.compacted))) <= 11
    assert values(store) == {"a": "29"}


async def test_what_happened_within_five_minutes_is_remembered(store, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(module, "WINDOW_EVENTS", 10)
    monkeypatch.setattr(module, "monotonic", lambda: now)
    first = await put(store, "a", "0")
    for n in range(30):
        now += 9.9
        await put(store, "a", str(n))
    assert len(list(store.since(first.rv))) == 30
    now += 40.0
    await put(store, "a", "30")
    assert 0 < store.compacted < first.rv + 10
    assert len(list(store.since(store.compacted))) > 20


async def test_a_restart_changes_nothing(tmp_path):
    store = Store(tmp_path)
    first = await put(store, "a", "1", app="x")
    for n in range(5):
        await put(store, "b", str(n))
    await store.remove(head(store, "a"), obj("a", "1"))
    store.compact(first.rv)
    before = values(store), store.rv, store.compacted, history(store)
    store.close()
    again = Store(tmp_path)
    assert before == (values(again), again.rv, again.compacted, history(again))
    assert (await put(again, "c")).rv == before[1] + 1
    again.close()


async def test_revisions_never_run_backwards_when_the_newest_rows_were_deletions(tmp_path):
    store = Store(tmp_path)
    await put(store, "a")
    gone = await store.remove(head(store, "a"), obj("a"))
    store.compact(gone.rv)
    store.close()
    again = Store(tmp_path)
    assert again.rv == gone.rv
    assert values(again) == {}
    again.close()


async def test_what_was_acknowledged_is_in_a_copy_of_the_files_taken_at_that_moment(tmp_path):
    store = Store(tmp_path / "live")
    for n in range(20):
        await asyncio.gather(*(put(store, f"{n}-{m}", "kept") for m in range(5)))
    shutil.copytree(tmp_path / "live", tmp_path / "copy")
    store.close()
    copy = Store(tmp_path / "copy")
    assert len(copy.list(COLLECTION)) == 100
    copy.close()


async def test_many_writers_share_commits(tmp_path, monkeypatch):
    store = Store(tmp_path)
    commits: list[int] = []
    settle = store._settle

    def counted(rows: list[Row], error: Unusable | None) -> None:
        commits.append(len(rows))
        settle(rows, error)

    monkeypatch.setattr(store, "_settle", counted)
    await asyncio.gather(*(put(store, f"o-{n}") for n in range(200)))
    assert sum(commits) == 200
    assert len(commits) < 100
    store.close()


async def test_a_failed_commit_fails_the_writes_and_only_those(tmp_path):
    store = Store(tmp_path)
    kept = await put(store, "a", "1")
    database = database_of(store)
    database.execute("CREATE TRIGGER full BEFORE INSERT ON revisions BEGIN SELECT RAISE(ABORT, 'disk full'); END")
    with pytest.raises(InternalError, match="disk full"):
        await put(store, "a", "2")
    assert store.get(COLLECTION, "ns", "a") is kept
    assert store.latest(COLLECTION, "ns", "a") is kept
    database.execute("DROP TRIGGER full")
    await put(store, "a", "3")
    assert values(store) == {"a": "3"}
    store.close()


async def test_a_damaged_file_is_named(tmp_path):
    store = Store(tmp_path)
    for number in range(50):
        await put(store, f"n{number}", "x" * 1000)
    store.close()
    path = tmp_path / "objects.db"
    whole = path.read_bytes()
    path.write_bytes(b"nonsense" * 100)
    with pytest.raises(Unusable, match=r"objects\.db cannot be used .*damaged: put a copy in its place"):
        Store(tmp_path)
    path.write_bytes(whole[:8192] + b"nonsense" * ((len(whole) - 8192) // 8))
    with pytest.raises(Unusable, match=r"objects\.db cannot be used .*damaged: put a copy in its place"):
        Store(tmp_path)


async def test_writes_behind_a_failed_one_fail_for_good(tmp_path):
    """They may have been based on what was lost: none of them may turn up after a restart."""
    store = Store(tmp_path)
    await put(store, "a", "1")
    database_of(store).execute(
        "CREATE TRIGGER no BEFORE INSERT ON revisions WHEN NEW.name = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    failing = [asyncio.ensure_future(put(store, "bad"))]
    while not failing[0].done():  # writes that queue up before the failure is known
        failing.append(asyncio.ensure_future(put(store, f"behind-{len(failing)}")))
        await asyncio.sleep(0)
    outcomes = await asyncio.gather(*failing, return_exceptions=True)
    acknowledged = {each.name for each in outcomes if not isinstance(each, BaseException)}
    await put(store, "later")
    store.close()
    again = Store(tmp_path)
    assert set(values(again)) == {"a", "later"} | acknowledged
    again.close()


async def test_a_full_disk_is_said_once_and_reading_goes_on(tmp_path, caplog):
    store = Store(tmp_path)
    await put(store, "a", "1")
    pages = database_of(store).execute("PRAGMA page_count").fetchone()[0]
    database_of(store).execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(InternalError, match=r"objects\.db cannot be used .*the disk is full: free some space"):
        await put(store, "b", "x" * 1_000_000)
    assert values(store) == {"a": "1"}
    assert [record.message for record in caplog.records if "disk is full" in record.message]
    database_of(store).execute("PRAGMA max_page_count=1000000")
    await put(store, "b", "2")
    assert values(store) == {"a": "1", "b": "2"}
    store.close()


async def test_a_file_that_cannot_be_written_is_said(tmp_path):
    store = Store(tmp_path)
    database_of(store).execute("PRAGMA query_only=1")
    with pytest.raises(InternalError, match="it cannot be written: make the folder and the file writable"):
        await put(store, "a")
    store.close()


def test_a_folder_that_cannot_be_used_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InUse, match=r"cannot be written .*: make it writable, or choose another folder"):
        FolderLock(tmp_path / "file" / "folder")


async def test_a_durable_store_waits_for_the_disk(tmp_path):
    for durable, level in ((False, 1), (True, 2)):
        store = Store(tmp_path / str(durable), durable=durable)
        assert database_of(store).execute("PRAGMA synchronous").fetchone() == (level,)
        await put(store, "a")
        store.close()
