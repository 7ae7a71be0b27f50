"""What the API server says of webhooks that do not answer as they should, in the words of kube-apiserver."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

import pytest
from tests.ports import free_port

from isvc.apiserver.admission import caller
from isvc.apiserver.admission.caller import Caller, CallFailed
from isvc.kube.objects import Object
from isvc.wire.x509.files import server_context
from isvc.wire.x509.issue import issue_authority, issue_serving

AUTHORITY = issue_authority("test", datetime.now(UTC))
STRANGER = issue_authority("stranger", datetime.now(UTC))
OK = b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a": 1}\n'


Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answers(*parts: bytes) -> Behaviour:
    """Answers every request with the parts, and hangs up after one that asks for it."""

    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.split(b":")[1]))
            for part in parts:
                writer.write(part)
                await writer.drain()
            if b"close" in b"".join(parts):
                return

    return behave


class Hook:
    """A webhook on a port of its own, and the requests that it got."""

    def __init__(self, behave: Behaviour) -> None:
        self._behave = behave
        self.connections = 0
        self.port = 0

    async def __aenter__(self) -> Hook:
        pair = issue_serving(AUTHORITY, ["127.0.0.1", "hook.ns.svc"], datetime.now(UTC))
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=server_context(pair))
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._behave(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    def config(self, authority: bytes = AUTHORITY.certificate) -> Object:
        bundle = base64.b64encode(authority).decode()
        return {"url": f"https://127.0.0.1:{self.port}/look", "caBundle": bundle}


async def ask(config: Object, seconds: float = 30) -> Object:
    calls = Caller()
    try:
        return await calls.post(config, {"kind": "AdmissionReview"}, timeout=seconds)
    finally:
        await calls.close()


async def test_a_webhook_is_asked_by_url_and_by_service_over_one_connection_each() -> None:
    async with Hook(answers(OK)) as hook:
        calls = Caller()
        for _ in range(3):
            assert await calls.post(hook.config(), {}, timeout=30) == {"a": 1}
        service = {"name": "hook", "namespace": "ns", "port": hook.port, "path": "/look"}
        by_service = {"service": service, "caBundle": hook.config()["caBundle"]}
        for _ in range(3):
            assert await calls.post(by_service, {}, timeout=30) == {"a": 1}
        await calls.close()
    assert hook.connections == 2


@pytest.mark.parametrize(
    ("behave", "words"),
    [
        (answers(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), "could not find the requested resource"),
        (answers(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"), r"unknown reason \(302\)"),
        (
            answers(b"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nlost"),
            r'an error on the server \("lost"\) has prevented the request from succeeding',
        ),
        (answers(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"), "the answer is not a JSON object"),
        (answers(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"), "couldn't get version/kind; json parse error"),
        (answers(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 9\r\n\r\nhalf"), "the connection was cut"),
        (answers(b"SSH-2.0-OpenSSH_9.6\r\n"), r'Post ".*/look\?timeout=30s": the answer is not valid HTTP/1.1'),
        (answers(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n" + b"x" * 200), "is larger than 100 bytes"),
    ],
)  # fmt: skip
async def test_no_proper_answer(behave: Behaviour, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "_LARGEST_ANSWER", 100)
    async with Hook(behave) as hook:
        with pytest.raises(CallFailed, match=words):
            await ask(hook.config())


async def test_a_webhook_that_ponders_for_too_long() -> None:
    async with Hook(answers()) as hook:
        with pytest.raises(CallFailed, match=r'Post ".*/look\?timeout=0.1s": context deadline exceeded'):
            await ask(hook.config(), 0.1)


async def test_a_webhook_that_shows_a_strangers_certificate() -> None:
    async with Hook(answers(OK)) as hook:
        with pytest.raises(CallFailed, match=r"tls: failed to verify certificate: x509: .*unable to get local issuer"):
            await ask(hook.config(STRANGER.certificate))
        with pytest.raises(CallFailed, match="unable to load root certificates"):
            await ask(hook.config(b"garbage"))


async def test_a_webhook_that_is_not_there() -> None:
    port = free_port()
    with pytest.raises(CallFailed, match=f"dial tcp 127.0.0.1:{port}: connect: connection refused"):
        await ask({"url": f"https://127.0.0.1:{port}/"})
    nowhere = caller._Address("https://nowhere/", "nowhere", "nowhere", "nowhere", 443, "/")
    assert caller._reason(socket.gaierror(-2, "Unknown"), nowhere) == "dial tcp: lookup nowhere: no such host"


async def test_a_webhook_that_does_not_speak_tls() -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    with pytest.raises(CallFailed, match='": tls: '):
        await ask({"url": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"})
    server.close()
