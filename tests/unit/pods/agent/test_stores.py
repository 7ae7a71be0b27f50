"""Payload logs in stores: batches by number and time, KServe's formats, the pod's credentials, and stores that fail."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
import os
import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import boto3
import pytest
from aiohttp import web
from arro3.io import read_parquet
from tests.unit.pods.agent.relaying import listening
from tests.unit.pods.storage_initializer.sites import Answer, site
from tests.waiting import until
from tests.web_servers import on_any_path, serving

from isvc.pods.agent import store_sink
from isvc.pods.agent.cloudevents import REQUEST, RESPONSE, Event, Origin
from isvc.pods.agent.log_store import LogStore, open_store
from isvc.pods.agent.logger import Ledger
from isvc.pods.agent.records import Sender, encode
from isvc.pods.agent.store_sink import (
    Batching,
    Marshal,
    StoreSink,
    external_marshal,
    folder_of,
    format_marshal,
    run_writers,
)
from isvc.pods.stores.errors import StorageError, Unreachable

ORIGIN = Origin("pod-1", "iris", "ns", "predictor", "default", {"team": "a b"})
SENDER = Sender("s3://logs/all", ORIGIN, "service-ca.crt")
TIME = datetime(2026, 1, 2, 3, 4, 5, 600000, UTC)


def _event(number: int = 1, kind: str = REQUEST, payload: bytes = b'{"instances":[1]}') -> Event:
    return Event(kind, f"id-{number}", TIME, "application/json", payload, {"X-User": ["ada"]})


class _Memory:
    """A store in memory, that can be made to fail or to hang."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.failures: list[Exception] = []
        self.open = threading.Event()
        self.open.set()

    def put(self, key: str, content: bytes) -> None:
        assert self.open.wait(60)
        if self.failures:
            raise self.failures.pop(0)
        self.objects[key] = content


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between tries."""
    monkeypatch.setattr(store_sink, "_PAUSES", (0.0, 0.0, 0.0))


def _sink(store: LogStore, batching: Batching, ledger: Ledger, marshal: Marshal | None = None) -> StoreSink:
    own = marshal or format_marshal("json", SENDER)
    return StoreSink(lambda: store, folder_of(ORIGIN, "json-1"), batching, own, ledger)


def _put(sink: StoreSink, ledger: Ledger, *events: Event) -> list[bool]:
    return [ledger.reserve(len(event.payload)) and sink.put(event) for event in events]


async def test_each_event_is_an_object_where_nothing_is_batched() -> None:
    store, ledger = _Memory(), Ledger()
    async with run_writers(_sink(store, Batching(), ledger)) as sink:
        _put(sink, ledger, _event(1), _event(1, RESPONSE))
        await until(lambda: ledger.delivered == 2)
    assert sorted(store.objects) == [
        "ns/iris/predictor/json-1/id-1-request.json",
        "ns/iris/predictor/json-1/id-1-response.json",
    ]
    assert ledger.held == 0


async def test_batches_hold_requests_or_answers_and_are_written_when_full_when_old_or_at_the_end() -> None:
    store, ledger = _Memory(), Ledger()
    async with run_writers(_sink(store, Batching(size=2), ledger)) as sink:
        _put(sink, ledger, _event(1), _event(1, RESPONSE), _event(2), _event(2, RESPONSE), _event(3))
        await until(lambda: len(store.objects) == 2)
        assert {len(json.loads(content)) for content in store.objects.values()} == {2}
    assert json.loads(store.objects["ns/iris/predictor/json-1/id-3-request.json"])["id"] == "id-3"
    async with run_writers(_sink(store, Batching(size=2, seconds=0.01), ledger)) as sink:
        _put(sink, ledger, _event(4))
        await until(lambda: "ns/iris/predictor/json-1/id-4-request.json" in store.objects)


async def test_a_store_that_is_away_for_a_moment_costs_nothing() -> None:
    store, ledger = _Memory(), Ledger()
    store.failures = [Unreachable("away"), Unreachable("away")]
    async with run_writers(_sink(store, Batching(), ledger)) as sink:
        _put(sink, ledger, _event())
        await until(lambda: ledger.delivered == 1)


async def test_what_cannot_be_kept_is_counted_and_lets_go_of_its_memory() -> None:
    store, ledger = _Memory(), Ledger()
    store.failures = [StorageError("no such bucket"), *(Unreachable("away") for _ in range(4))]
    async with run_writers(_sink(store, Batching(), ledger)) as sink:
        _put(sink, ledger, _event(1))
        await until(lambda: ledger.failed == 1)
        _put(sink, ledger, _event(2))
        await until(lambda: ledger.failed == 2)
    assert (store.objects, ledger.held, ledger.delivered) == ({}, 0, 0)


async def test_a_store_that_hangs_takes_what_there_is_room_for() -> None:
    store, ledger = _Memory(), Ledger(limit=1 << 20)
    store.open.clear()
    async with run_writers(_sink(store, Batching(), ledger)) as sink:
        taken = [_put(sink, ledger, _event(number))[0] for number in range(1500)]
        assert taken == [True] * 1000 + [False] * 500
        store.open.set()
        await until(lambda: ledger.delivered == 1000)


async def test_batches_that_are_larger_than_what_may_wait_are_written_before() -> None:
    store, ledger = _Memory(), Ledger()
    async with run_writers(_sink(store, Batching(size=600), ledger)) as sink:
        taken = [_put(sink, ledger, _event(number), _event(number, RESPONSE)) for number in range(500)]
        assert taken == [[True, True]] * 500
        await until(lambda: ledger.delivered == 1000)


@pytest.mark.parametrize("form", ["json", "csv", "parquet"])
async def test_headers_that_are_no_text_are_kept_and_end_no_writer(form: str) -> None:
    store, ledger = _Memory(), Ledger()
    async with run_writers(_sink(store, Batching(), ledger, format_marshal(form, SENDER))) as sink:
        for number in range(3):
            sink.put(Event(REQUEST, f"\udcff-{number}", TIME, "text/\udcfe", b"", {}))
        await until(lambda: ledger.delivered == 3)
    assert sorted(store.objects) == [f"ns/iris/predictor/json-1/%FF-{number}-request.{form}" for number in range(3)]


async def test_a_writer_outlives_whatever_goes_wrong() -> None:
    store, ledger = _Memory(), Ledger()
    store.failures = [TypeError("a library's bug")] * 3
    async with run_writers(_sink(store, Batching(), ledger)) as sink:
        _put(sink, ledger, *map(_event, range(4)))
        await until(lambda: (ledger.failed, ledger.delivered) == (3, 1))


async def test_a_client_that_chooses_the_id_chooses_no_folder() -> None:
    store, ledger = _Memory(), Ledger()
    event = Event(REQUEST, "../../../etc/x" + "y" * 500, TIME, "", b"", {})
    async with run_writers(_sink(store, Batching(), ledger)) as sink:
        sink.put(event)
        await until(lambda: store.objects)
    [key] = store.objects
    assert key.startswith("ns/iris/predictor/json-1/..%2F..%2F..%2Fetc%2Fx")
    assert len(key.rpartition("/")[2]) < 255
    assert folder_of(ORIGIN, "../../../up") == "ns/iris/predictor/up"
    assert folder_of(Origin("x"), "") == ""


def test_json_is_as_go_prints_it() -> None:
    record = json.loads(encode("json", [_event()], SENDER)[0])
    assert record == {
        "url": {"Scheme": "s3", "Opaque": "", "User": None, "Host": "logs", "Path": "/all", "Fragment": "",
                "RawQuery": "", "RawPath": "", "RawFragment": "", "ForceQuery": False, "OmitHost": False},
        "bytes": base64.b64encode(b'{"instances":[1]}').decode(),
        "contentType": "application/json", "reqType": "request", "id": "id-1",
        "sourceUri": {"Scheme": "", "Opaque": "", "User": None, "Host": "", "Path": "pod-1", "Fragment": "",
                      "RawQuery": "", "RawPath": "", "RawFragment": "", "ForceQuery": False, "OmitHost": False},
        "inferenceService": "iris", "namespace": "ns", "component": "predictor", "endpoint": "default",
        "metadata": {"X-User": ["ada"]}, "annotations": {"team": "a b"}, "certName": "service-ca.crt",
        "occurrenceTime": "2026-01-02T03:04:05.6Z",
    }  # fmt: skip


COLUMNS = ["url", "bytes", "contentType", "reqType", "id", "sourceUri", "inferenceService", "namespace", "component",
           "endpoint", "metadata", "annotations", "certName", "tlsSkipVerify"]  # fmt: skip


def test_csv_and_parquet_have_the_columns_of_kserve() -> None:
    events = [_event(1, payload=b'"a",\n\xff'), Event(RESPONSE, 'q"\udcff', TIME, "text/plain", b"", {})]
    [header, first, second] = csv.reader(io.StringIO(encode("csv", events, SENDER)[0].decode()))
    assert header == COLUMNS
    assert (base64.b64decode(first[1]), first[3], first[10], first[13]) == (
        b'"a",\n\xff',
        "request",
        '{"X-User":["ada"]}',
        "false",
    )
    table = read_parquet(io.BytesIO(encode("parquet", events, SENDER)[0])).read_all()
    assert table.column_names == COLUMNS
    assert table.column("reqType").to_pylist() == ["request", "response"]
    assert [base64.b64decode(text) for text in table.column("bytes").to_pylist()] == [b'"a",\n\xff', b""]
    assert table.column("id").to_pylist() == ["id-1", second[4]]
    assert table.column("tlsSkipVerify").to_pylist() == [False, False]


async def test_a_marshaller_of_ones_own() -> None:
    async def marshal(request: web.Request) -> web.Response:
        records = await request.json()
        return web.Response(
            text=" ".join(record["id"] for record in records), headers={"X-Log-Marshal-Extension": "txt"}
        )

    store, ledger = _Memory(), Ledger()
    async with serving(on_any_path(marshal)) as port:
        own = external_marshal(f"http://127.0.0.1:{port}/marshal", SENDER)
        async with run_writers(_sink(store, Batching(size=2), ledger, own)) as sink:
            _put(sink, ledger, _event(1), _event(2))
            await until(lambda: ledger.delivered == 2)
    assert store.objects == {"ns/iris/predictor/json-1/id-1-request.txt": b"id-1 id-2"}


async def test_a_marshaller_over_tls_is_sent_nothing_in_the_clear() -> None:
    received: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(1))
        writer.close()

    store, ledger = _Memory(), Ledger()
    async with listening(listen) as port:
        own = external_marshal(f"https://127.0.0.1:{port}/marshal", SENDER)
        async with run_writers(_sink(store, Batching(), ledger, own)) as sink:
            _put(sink, ledger, _event())
            await until(lambda: ledger.failed == 1)
    assert set(received) == {b"\x16"}  # a handshake


def test_files_and_claims(tmp_path: Path) -> None:
    open_store(f"file://{tmp_path}/logs", {}).put("a/b.json", b"{}")
    assert (tmp_path / "logs/a/b.json").read_bytes() == b"{}"
    (tmp_path / "claims/team").mkdir(parents=True)
    environment = {"ISVC_MOUNTS": json.dumps({"/mnt/pvc/team": str(tmp_path / "claims/team")})}
    open_store("pvc://team/logs", environment).put("c.json", b"[]")
    assert (tmp_path / "claims/team/logs/c.json").read_bytes() == b"[]"
    with pytest.raises(StorageError, match="not mounted"):
        open_store("pvc://other/logs", environment)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"exists|directory"):
        open_store(f"file://{tmp_path}/file", {}).put("c.json", b"[]")


@pytest.mark.parametrize("by", ["variables", "storage-config"])
def test_s3(s3_endpoint: str, by: str) -> None:
    keys = {
        "access_key_id": "user",
        "secret_access_key": "password",
        "region": "us-east-1",
        "endpoint_url": s3_endpoint,
    }
    environment: Mapping[str, str] = {"STORAGE_CONFIG": json.dumps({"type": "s3", **keys})}
    if by == "variables":
        environment = {
            "AWS_ACCESS_KEY_ID": "user",
            "AWS_SECRET_ACCESS_KEY": "password",
            "AWS_ENDPOINT_URL": s3_endpoint,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    client: Any = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        aws_access_key_id="user",
        aws_secret_access_key="password",
        region_name="us-east-1",
    )
    client.create_bucket(Bucket=f"logs-{by}")
    open_store(f"s3://logs-{by}/all", environment).put("ns/1-request.json", b"{}")
    assert client.get_object(Bucket=f"logs-{by}", Key="all/ns/1-request.json")["Body"].read() == b"{}"
    with pytest.raises(StorageError, match="NoSuchBucket"):
        open_store("s3://nothing", environment).put("x", b"")


def _taking(received: dict[str, bytes]) -> Any:
    """Answers uploads as Google and Azure do."""

    def take(answer: Answer) -> bool:
        if answer.command == "GET":
            answer.send_error(404)
            return True
        body = answer.rfile.read(int(answer.headers["Content-Length"]))
        if named := re.search(rb'"name": "([^"]+)"', body):  # Google's: metadata and content are parts of one body
            received[named[1].decode()] = body
            answer.give(json.dumps({"name": named[1].decode(), "bucket": "b"}).encode())
        else:
            received[unquote(urlsplit(answer.path).path)] = body
            answer.send_response(201)
            for name, value in {"Content-Length": "0", "ETag": '"x"'}.items():
                answer.send_header(name, value)
            answer.end_headers()
        return True

    return take


def test_google_and_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    received: dict[str, bytes] = {}
    monkeypatch.setattr(Answer, "do_PUT", Answer.do_GET, raising=False)
    monkeypatch.setattr(Answer, "do_POST", Answer.do_GET, raising=False)
    with site() as server:
        server.spoil = _taking(received)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", server.address)
        open_store("gs://b/logs", os.environ).put("ns/1.json", b'{"kept": 1}')
        key = base64.b64encode(b"key").decode()
        azure = {"AZURE_SERVICE_URL": server.address, "AZURE_STORAGE_ACCESS_KEY": key}
        open_store("abfs://box@account.dfs.core.windows.net/logs", azure).put("ns/2.json", b'{"kept": 2}')
    assert b'{"kept": 1}' in received["logs/ns/1.json"]
    assert received["/box/logs/ns/2.json"] == b'{"kept": 2}'
    with pytest.raises(StorageError, match="names no account"):
        open_store("abfs://box/logs", {})
