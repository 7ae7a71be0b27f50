"""The webhook server over real TLS, without an API server in front."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import aiohttp
import orjson
import pytest

from isvc.kube.errors import BadRequest
from isvc.kube.objects import GVK
from isvc.programs.tls import trust_clients
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.failure import ClusterError, Unreachable
from isvc.toolkit.webhook import Admission, ClientNames, Conversion, Route, WebhookServer, allow, allow_change, deny
from isvc.toolkit.webhook import server as server_module
from isvc.wire.http1 import connection as http_connection
from isvc.wire.http1.connection import MAX_HEAD
from isvc.wire.x509.issue import SERVING_LIFE, issue_authority, issue_client, issue_serving

CONVERSION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "ConversionReview",
    "request": {"uid": "u-2", "desiredAPIVersion": "g/v2", "objects": [{"apiVersion": "g/v1", "kind": "K"}]},
}


def write_pair(folder, authority) -> None:
    pair = issue_serving(authority, ["localhost", "127.0.0.1"], SystemClock().now())
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


@pytest.fixture(scope="module")
def authority():
    return issue_authority("test", SystemClock().now())


@pytest.fixture
def seen() -> list:
    return []


@pytest.fixture
async def server(tmp_path, authority, seen) -> AsyncIterator[WebhookServer]:
    write_pair(tmp_path, authority)

    def look(request):
        seen.append(request)
        return allow_change(request.object, {**request.object, "x": 1}, "careful")

    async def refuse(request):
        return deny("no")

    def complain(request):
        raise BadRequest("wrong type")

    def crash(request):
        raise KeyError("oops")

    def be_cut_off(request):
        raise Unreachable("https://server: connection lost")

    routes: dict[str, Route] = {
        "/cut-off": Admission(be_cut_off),
        "/look": Admission(look),
        "/refuse": Admission(refuse),
        "/complain": Admission(complain),
        "/crash": Admission(crash),
        "/convert": Conversion(lambda objects, version: [{**each, "apiVersion": version} for each in objects]),
    }
    running = WebhookServer(0, tmp_path, routes, host="127.0.0.1")
    await running.start()
    running.open()
    yield running
    await running.stop()


@pytest.fixture
async def ask(server, authority):
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, force_close=True)) as session:

        async def ask(path: str, body: object = None, *, data: bytes | None = None, kind: str = "application/json"):
            content = data if data is not None else orjson.dumps(body)
            url = f"https://127.0.0.1:{server.port}{path}"
            async with session.post(url, data=content, headers={"Content-Type": kind}) as response:
                return response.status, await response.json(content_type=None)

        yield ask


def review(version: str = "v1", **request: object) -> dict:
    asked = {
        "uid": "u-1",
        "operation": "CREATE",
        "namespace": "ns",
        "name": "it",
        "kind": {"group": "g", "version": "v", "kind": "K"},
        "object": {"metadata": {"name": "it"}},
        "userInfo": {"username": "jane"},
        **request,
    }
    return {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": asked}


async def test_it_knows_when_its_certificate_ends(server, tmp_path):
    left = server.certificate_expires() - SystemClock().now().timestamp()
    assert abs(left - SERVING_LIFE.total_seconds()) < 3600
    (tmp_path / "tls.crt").write_text("nothing")
    assert server.certificate_expires() == 0


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_a_review_is_answered_in_its_own_version(ask, seen, version):
    status, answer = await ask("/look?timeout=10s", review(version, dryRun=True, oldObject={"a": 1}))
    assert status == 200
    assert answer["apiVersion"] == f"admission.k8s.io/{version}"
    response = answer["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u-1", True, "JSONPatch")
    assert orjson.loads(base64.b64decode(response["patch"])) == [{"op": "add", "path": "/x", "value": 1}]
    assert response["warnings"] == ["careful"]
    [request] = seen
    assert request.kind == GVK("g", "v", "K")
    assert (request.operation, request.namespace, request.name) == ("CREATE", "ns", "it")
    assert (request.dry_run, request.old_object, request.user) == (True, {"a": 1}, {"username": "jane"})


@pytest.mark.parametrize(
    ("path", "code", "reason", "message"),
    [
        ("/refuse", 403, "Forbidden", "no"),
        ("/complain", 400, "BadRequest", "wrong type"),
        ("/cut-off", 503, "ServiceUnavailable", "the webhook cannot decide now: https://server: connection lost"),
        ("/crash", 500, "InternalError", "the webhook crashed: KeyError: 'oops'"),
    ],
)
async def test_refusals_complaints_and_crashes_are_told_inside_the_review(ask, path, code, reason, message):
    status, answer = await ask(path, review())
    assert status == 200
    assert answer["response"]["allowed"] is False
    status = answer["response"]["status"]
    assert (status["code"], status["reason"], status["message"]) == (code, reason, message)


@pytest.mark.parametrize(
    ("asked", "code", "reason"),
    [
        ({"data": b""}, 400, "BadRequest"),
        ({"data": b"{"}, 400, "BadRequest"),
        ({"body": {"kind": "Pod"}}, 400, "BadRequest"),
        ({"body": {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}}, 400, "BadRequest"),
        ({"body": review(uid=["u-1"])}, 400, "BadRequest"),
        ({"body": {}, "kind": "text/plain"}, 400, "BadRequest"),
        ({"data": b"x" * (server_module.BODY_LIMIT + 1)}, 413, "RequestEntityTooLarge"),
    ],
)
async def test_what_is_no_review_is_refused_with_a_status(ask, asked, code, reason):
    status, answer = await ask("/look", **asked)
    assert (status, answer["kind"], answer["code"], answer["reason"]) == (code, "Status", code, reason)


@pytest.mark.parametrize("field", ["operation", "namespace", "name", "subResource", "kind", "userInfo"])
async def test_a_field_of_a_review_that_is_a_list_is_told_inside_it(ask, seen, field):
    asked = review()
    asked["request"][field] = ["x"]
    status, answer = await ask("/look", asked)
    assert (status, answer["response"]["allowed"], answer["response"]["status"]["code"]) == (200, False, 400)
    assert f"{field} of the AdmissionReview" in answer["response"]["status"]["message"]
    assert seen == []


async def test_a_version_that_is_not_known_is_told_inside_the_review(ask):
    _, answer = await ask("/look", {**review(), "apiVersion": "admission.k8s.io/v9"})
    assert answer["response"]["uid"] == "u-1"
    assert "is not known" in answer["response"]["status"]["message"]


async def test_unknown_paths_are_not_found(ask):
    status, answer = await ask("/nowhere", review())
    assert (status, answer["message"]) == (404, "no webhook at /nowhere")


async def test_conversion(ask):
    status, answer = await ask("/convert", CONVERSION)
    assert status == 200
    assert answer["response"] == {
        "uid": "u-2",
        "convertedObjects": [{"apiVersion": "g/v2", "kind": "K"}],
        "result": {"status": "Success"},
    }
    status, answer = await ask("/convert", {"kind": "Nonsense"})
    assert (status, answer["kind"]) == (400, "Status")


async def test_admission_waits_for_the_caches_but_not_for_ever(tmp_path, authority):
    write_pair(tmp_path, authority)
    running = WebhookServer(0, tmp_path, {"/look": Admission(lambda request: allow())}, host="127.0.0.1")
    await running.start()
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:

        async def ask(seconds: str) -> dict:
            url = f"https://127.0.0.1:{running.port}/look?timeout={seconds}"
            async with session.post(url, json=review()) as response:
                return (await response.json())["response"]

        assert (await ask("0.1s"))["status"]["code"] == 504
        waiting = asyncio.create_task(ask("30s"))
        running.open()
        async with asyncio.timeout(30):
            assert (await waiting)["allowed"] is True
    await running.stop()


async def test_a_new_certificate_is_served_without_a_restart_and_a_broken_one_is_not(server, tmp_path, authority):
    def served() -> str:
        return ssl.get_server_certificate(("127.0.0.1", server.port))

    first = await asyncio.to_thread(served)
    (tmp_path / "tls.crt").write_text("half of it")
    assert await asyncio.to_thread(served) == first
    write_pair(tmp_path, authority)
    assert await asyncio.to_thread(served) == (tmp_path / "tls.crt").read_text()


async def test_no_certificate_is_one_clear_line(tmp_path):
    with pytest.raises(ClusterError, match="no valid certificate for the webhooks in"):
        await WebhookServer(0, tmp_path, {}).start()


@pytest.fixture
async def wire(server, authority):
    """A bare connection, for what no well-behaved client sends."""
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
    yield reader, writer
    writer.close()


def posted(path: str, *headers: str, **request: Any) -> bytes:
    body = orjson.dumps(review(**request))
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


async def received(reader: asyncio.StreamReader) -> tuple[int, dict]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].split()[0])
    return int(head.split()[1]), orjson.loads(await reader.readexactly(length))


async def test_requests_sent_ahead_are_answered_in_order(wire):
    reader, writer = wire
    paths = ["/refuse", "/look", "/refuse", "/refuse", "/look"]
    writer.write(b"".join(posted(path, uid=str(number)) for number, path in enumerate(paths)))
    for number, path in enumerate(paths):
        _, answer = await received(reader)
        assert (answer["response"]["uid"], answer["response"]["allowed"]) == (str(number), path == "/look")
    writer.write(posted("/look", uid="later"))
    assert (await received(reader))[1]["response"]["uid"] == "later"


async def test_a_large_review_is_no_large_head(server):
    """Head and body may come in one piece."""
    answered = []
    asked = http_connection.Connection(server, lambda _: None, lambda _: None)
    asked.connection_made(type("Wire", (), {"write": lambda _, data: answered.append(data)})())
    asked.data_received(posted("/look", object={"metadata": {"name": "it"}, "data": "x" * 4 * MAX_HEAD}))
    assert answered[0].startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_body_may_come_in_chunks_and_after_a_question(wire):
    reader, writer = wire
    body = orjson.dumps(review())
    head = "POST /look HTTP/1.1\r\nHost: x\r\nContent-Type: application/json; charset=utf-8\r\nExpect: 100-continue\r\n"
    writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    for part in (body[:10], body[10:]):
        writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    assert (await received(reader))[1]["response"]["allowed"] is True


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"hello there\r\n\r\n", 400),
        (b"GET /look HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 405),
    ],
)
async def test_what_is_no_request_is_told_and_hung_up_on(wire, sent, code, monkeypatch):
    monkeypatch.setattr(http_connection, "LINGER_SECONDS", 0.5)
    reader, writer = wire
    writer.write(sent)
    status, answer = await received(reader)
    assert (status, answer["code"]) == (code, code)
    assert await reader.read() == b""


async def test_what_was_asked_is_answered_before_the_end(tmp_path, authority):
    write_pair(tmp_path, authority)
    asked, decide = asyncio.Event(), asyncio.Event()

    async def ponder(request):
        asked.set()
        await decide.wait()
        return allow()

    running = WebhookServer(0, tmp_path, {"/ponder": Admission(ponder)}, host="127.0.0.1")
    await running.start()
    running.open()
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port, ssl=context)
    async with asyncio.timeout(30):
        writer.write(posted("/ponder"))
        await asked.wait()
        stopping = asyncio.create_task(running.stop())
        await asyncio.sleep(0)
        decide.set()
        assert (await received(reader))[1]["response"]["allowed"] is True
        await stopping
        with pytest.raises(OSError, match=r".*"):
            await asyncio.open_connection("127.0.0.1", running.port)
    writer.close()


@pytest.mark.parametrize(
    ("shown", "names", "path", "code"),
    [
        ("apiserver", (), "/look", 200),
        ("apiserver", ("apiserver",), "/look", 200),
        ("kubelet", ("apiserver",), "/look", 401),
        ("", (), "/look", 401),
        ("", (), "/convert", 200),  # an API server shows no certificate to whom it asks to convert
    ],
)
async def test_admission_is_for_clients_that_show_a_certificate(tmp_path, authority, shown, names, path, code):
    write_pair(tmp_path, authority)
    clients, now = issue_authority("clients", SystemClock().now()), SystemClock().now()
    (tmp_path / "clients.crt").write_bytes(clients.certificate)
    routes: dict[str, Route] = {
        "/look": Admission(lambda request: allow()),
        "/convert": Conversion(lambda objects, version: objects),
    }
    server = WebhookServer(0, tmp_path, routes, host="127.0.0.1", clients=ClientNames(names))
    trust_clients(server.tls, tmp_path / "clients.crt")
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    if shown:
        pair = issue_client(clients, shown, ["system:masters"], now, timedelta(days=1))
        (tmp_path / "client.pem").write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(tmp_path / "client.pem")
    body = review() if path == "/look" else CONVERSION
    await server.start()
    server.open()
    try:
        url = f"https://127.0.0.1:{server.port}{path}"
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(connector=connector) as session, session.post(url, json=body) as response:
            assert response.status == code, await response.text()
    finally:
        await server.stop()


async def test_a_certificate_of_another_authority_is_no_certificate(tmp_path, authority):
    write_pair(tmp_path, authority)
    (tmp_path / "clients.crt").write_bytes(issue_authority("clients", SystemClock().now()).certificate)
    server = WebhookServer(0, tmp_path, {"/look": Admission(lambda request: allow())}, clients=ClientNames())
    trust_clients(server.tls, tmp_path / "clients.crt")
    pair = issue_client(authority, "apiserver", [], SystemClock().now(), timedelta(days=1))
    (tmp_path / "client.pem").write_bytes(pair.certificate + pair.key)
    context = ssl.create_default_context(cadata=authority.certificate.decode())
    context.load_cert_chain(tmp_path / "client.pem")
    await server.start()
    server.open()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
            with pytest.raises(aiohttp.ClientError):
                await session.post(f"https://localhost:{server.port}/look", json=review())
    finally:
        await server.stop()
