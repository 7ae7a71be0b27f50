"""The server that strangers ask: who may keep a connection, how it ends, and which certificate it shows."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest
from tests.waiting import until

from isvc.wire.http1 import connection, server
from isvc.wire.http1.connection import Connection, Handler
from isvc.wire.http1.message import Request, Response, Stream, Writer
from isvc.wire.http1.server import HttpServer
from isvc.wire.x509.files import CertificateFiles
from isvc.wire.x509.issue import Pair, issue_authority, issue_serving

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
AUTHORITY = issue_authority("test", datetime.now(UTC))


class Pages(Handler[Request]):
    """`/` is answered at once, `/ponder` when a test says so, `/stream` goes on until the client leaves.

    `/own` repeats the header X-Own.
    """

    max_body = 1000
    request_type = Request

    def __init__(self) -> None:
        self.asked, self.decide, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.connections: WeakSet[Connection[Request]] = WeakSet()

    def handle(self, request: Request, connection: Connection[Request]) -> Response | Awaitable[Response]:
        self.connections.add(connection)
        if request.path == "/ponder":
            return self._ponder()
        if request.path == "/stream":
            return Stream(self._produce)
        if request.path == "/own":
            return Response(request.headers.get("x-own", "none").encode())
        if request.path == "/large":
            return Response(b"x" * (16 << 20))
        return Response(b"hello")

    async def _ponder(self) -> Response:
        self.asked.set()
        await self.decide.wait()
        return Response(b"decided")

    async def _produce(self, writer: Writer) -> None:
        writer.write(b"first")
        await writer.gone
        self.ended.set()

    def refusal(self, status: int, message: str) -> Response:
        return Response(message.encode(), status)


class Running:
    def __init__(self, pages: Pages, http: HttpServer[Request], port: int) -> None:
        self.pages, self.http, self.port = pages, http, port
        self._writers: list[asyncio.StreamWriter] = []

    async def connect(self, sent: bytes = b"", **options: Any) -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, **options)
        self._writers.append(writer)
        writer.write(sent)
        return reader

    @property
    def writer(self) -> asyncio.StreamWriter:
        """That of the connection made last."""
        return self._writers[-1]

    async def close(self) -> None:
        await self.http.stop()
        for writer in self._writers:
            writer.transport.abort()


Start = Callable[..., Awaitable[Running]]


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setattr(server, "SWEEP_SECONDS", 0.02)
    started: list[Running] = []

    async def begin(idle_seconds: float = 600, **options: Any) -> Running:
        pages = Pages()
        http = HttpServer(pages, idle_seconds=idle_seconds, **options)
        _, port = await http.listen("127.0.0.1", 0)
        started.append(Running(pages, http, port))
        return started[-1]

    async with asyncio.timeout(60):
        yield begin
        for running in started:
            await running.close()


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.partition("content-length: ")[2].split()[0])
    return int(head.split()[1]), await reader.readexactly(length)


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the connection ends without another byte, by a close or a reset."""
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def test_who_sends_headers_one_byte_at_a_time_is_cut_off(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.1)
    running = await start()
    reader = await running.connect(b"GET / HTTP/1.1\r\nX: ")

    async def drip() -> None:
        while True:
            running.writer.write(b"x")
            await asyncio.sleep(0.01)

    dripping = asyncio.create_task(drip())
    assert await ended(reader)
    dripping.cancel()


async def test_a_trailer_is_no_header(start: Start) -> None:
    chunked = b"POST /own HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Own: 1\r\n\r\n"
    reader = await (await start()).connect(chunked)
    assert await answer(reader) == (200, b"none")


async def test_who_says_nothing_is_cut_off_and_who_waits_for_an_answer_is_not(start: Start) -> None:
    running = await start(idle_seconds=0.1)
    waiting = await running.connect(GET.replace(b"/", b"/ponder", 1))
    await running.pages.asked.wait()
    silent, spoke = await running.connect(), await running.connect(GET)
    assert await answer(spoke) == (200, b"hello")
    assert await ended(silent)
    assert await ended(spoke)
    running.pages.decide.set()
    assert await answer(waiting) == (200, b"decided")


async def test_who_does_not_read_the_answer_is_cut_off(start: Start) -> None:
    running = await start(idle_seconds=0.1)
    await running.connect(GET.replace(b"/", b"/large", 1), limit=1)
    await until(lambda: bool(running.http.connections), "the connection")
    await until(lambda: not running.http.connections, "the end of the connection")


async def test_headers_without_end_are_refused(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LINGER_SECONDS", 1.0)  # what was not read by then would take the answer along
    running = await start()
    reader = await running.connect(b"GET / HTTP/1.1\r\nX: " + b"x" * 4 * connection.MAX_HEAD)
    assert (await answer(reader))[0] == 431
    assert await ended(reader)


@pytest.mark.parametrize(
    "body", [b"Content-Length: 1001\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001]
)
async def test_a_body_over_the_limit_is_refused(start: Start, body: bytes) -> None:
    running = await start()
    reader = await running.connect(b"POST / HTTP/1.1\r\nHost: here\r\n" + body)
    assert await answer(reader) == (413, b"Request entity too large: limit is 1000")


async def test_bodies_that_do_not_end_cost_the_first_its_connection(start: Start) -> None:
    running = await start(most_held=2500)
    head = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"
    readers = []
    for number in range(4):
        readers.append(await running.connect(head + b"x" * 900))
        await until(lambda: sum(each.held > 0 for each in running.http.connections) == min(len(readers), 2), "it holds")
        assert [await ended(each) for each in readers[: max(number - 1, 0)]] == [True] * max(number - 1, 0)
    running.writer.write(b"x" * 100)
    assert await answer(readers[-1]) == (200, b"hello")
    assert sum(each.held for each in running.http.connections) == running.http._held == 900


async def test_a_request_on_a_half_closed_connection_leaves_nothing_behind(start: Start) -> None:
    running = await start()
    reader = await running.connect(GET + GET.replace(b"/", b"/stream", 1))
    assert await answer(reader) == (200, b"hello")
    running.writer.write_eof()
    await running.pages.ended.wait()
    await until(lambda: not running.http.connections, "the end of the connection")


async def greeted(running: Running) -> asyncio.StreamReader:
    """A connection that was answered at another moment, as the event loop measures time, than the one before."""
    loop, moment = asyncio.get_running_loop(), asyncio.get_running_loop().time()
    await until(lambda: loop.time() > moment, "the next moment")
    reader = await running.connect(GET)
    assert await answer(reader) == (200, b"hello")
    return reader


async def test_too_many_connections_cost_the_longest_idle_its_own(start: Start) -> None:
    running = await start(max_connections=3)
    busy = await running.connect(GET.replace(b"/", b"/ponder", 1))
    await running.pages.asked.wait()
    first, second, third = [await greeted(running) for _ in range(3)]
    assert await ended(first)
    flood = [asyncio.create_task(ended(await running.connect())) for _ in range(50)]
    assert await ended(second)
    assert await ended(third)
    await until(lambda: sum(each.done() for each in flood) == 48, "the end of all but two")
    running.pages.decide.set()
    assert await answer(busy) == (200, b"decided")


async def test_the_end_waits_for_answers_and_ends_streams(start: Start) -> None:
    running = await start()
    idle, stream = await running.connect(), await running.connect(GET.replace(b"/", b"/stream", 1))
    assert (await stream.readuntil(b"first\r\n")).startswith(b"HTTP/1.1 200")
    waiting = await running.connect(GET.replace(b"/", b"/ponder", 1))
    await running.pages.asked.wait()
    stopping = asyncio.create_task(running.http.stop(drain_seconds=60))
    assert await ended(idle)
    assert await stream.read() == b"0\r\n\r\n"
    assert not stopping.done()
    with pytest.raises(OSError, match=r".*"):
        await asyncio.open_connection("127.0.0.1", running.port)
    running.pages.decide.set()
    assert await answer(waiting) == (200, b"decided")
    await stopping
    assert not running.http.connections


async def test_before_the_end_each_connection_gets_one_more_answer(start: Start) -> None:
    running = await start()
    kept = await running.connect(GET)
    assert await answer(kept) == (200, b"hello")
    first = running.writer
    running.http.give_up_connections()
    first.write(GET)
    for reader in (kept, await running.connect(GET)):
        assert b"connection: close" in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert await reader.read() == b"hello"


async def test_who_answers_too_late_is_cut_off_at_the_end(start: Start) -> None:
    running = await start()
    reader = await running.connect(GET.replace(b"/", b"/ponder", 1))
    await running.pages.asked.wait()
    await running.http.stop(drain_seconds=0.01)
    assert await ended(reader)
    running.pages.decide.set()


@pytest.mark.parametrize("path", [b"/", b"/stream"])
@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
async def test_a_connection_that_ended_leaves_nothing_to_the_garbage_collector(
    start: Start, tmp_path: Path, without_collector: None, path: bytes, tls: bool
) -> None:
    running = await start(**({"tls": certificate_files(tmp_path)} if tls else {}))
    trusted = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
    reader = await running.connect(
        GET.replace(b"/", path, 1), **({"ssl": trusted, "server_hostname": "localhost"} if tls else {})
    )
    await reader.readuntil(b"\r\n\r\n")
    assert len(running.pages.connections) == 1
    running.writer.close()
    await until(lambda: not running.pages.connections, "the end of the connection")


def new_pair() -> Pair:
    return issue_serving(AUTHORITY, ["localhost"], datetime.now(UTC))


def certificate_files(folder: Path) -> CertificateFiles:
    write(folder, new_pair())
    files = CertificateFiles(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), folder / "tls.crt", folder / "tls.key")
    files.load()
    return files


def write(folder: Path, pair: Pair) -> None:
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


async def test_a_new_certificate_is_shown_to_the_next_client_and_one_without_its_key_is_not(
    start: Start, tmp_path: Path
) -> None:
    running = await start(tls=certificate_files(tmp_path))
    trusted = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())

    async def shown() -> str:
        reader = await running.connect(GET, ssl=trusted, server_hostname="localhost")
        assert await answer(reader) == (200, b"hello")
        return ssl.DER_cert_to_PEM_cert(running.writer.get_extra_info("ssl_object").getpeercert(True))

    first, second = await shown(), new_pair()
    kept = Pair(first.encode(), (tmp_path / "tls.key").read_bytes())
    for useless in (Pair(b"half", kept.key), Pair(second.certificate, kept.key), Pair(kept.certificate, second.key)):
        write(tmp_path, useless)
        assert await shown() == first
    write(tmp_path, second)
    assert await shown() == second.certificate.decode()


async def test_who_never_ends_the_handshake_keeps_nobody_waiting(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HANDSHAKE_SECONDS", 0.1)
    running = await start(tls=certificate_files(tmp_path))
    assert await ended(await running.connect(b"\x16\x03"))
