"""Requests and responses made to be read differently by the gateway and by those beside it."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzzing import budget
from tests.unit.local.gateway.conftest import running_gateway, running_sites
from tests.unit.local.gateway.raw import Backend, exchange, named

from isvc.local.gateway.envoy.bootstrap import Front, Limits


async def read_all(port: int, request: bytes) -> bytes:
    """All that is answered until the gateway closes, which is asked for."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(30):
        answer = await reader.read()
    writer.close()
    return answer


POST = "POST / HTTP/1.1\r\nHost: h.test\r\n"
GET = "GET / HTTP/1.1\r\nHost: h.test\r\n"
AMBIGUOUS = {
    "both lengths": POST + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX",
    "two lengths": POST + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nXY",
    "headers of others that stay behind": GET + "Connection: close, Host\r\n\r\n",
    "no number": POST + "Content-Length: +1\r\n\r\nX",
    "unknown coding": POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked twice": POST + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "space before colon": GET + "Transfer-Encoding : chunked\r\n\r\n",
    "two hosts": GET + "Host: other\r\n\r\n",
    "no host": "GET / HTTP/1.1\r\n\r\n",
    "a user in the host": "GET / HTTP/1.1\r\nHost: me:pw@h.test\r\n\r\n",
    "a path in the host": "GET / HTTP/1.1\r\nHost: h.test/x\r\n\r\n",
    "a zero byte": GET + "X-A: a\0b\r\n\r\n",
    "a long header": GET + f"X-A: {'a' * 100_000}\r\n\r\n",
    "many headers": GET + "X: 1\r\n" * 9999 + "\r\n",
}


@pytest.mark.parametrize("name", AMBIGUOUS)
async def test_what_can_be_read_in_two_ways_is_refused(gateway, name: str) -> None:
    async with Backend() as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        answer = await exchange(gateway.port, AMBIGUOUS[name].encode("latin-1"))
        assert answer.split()[1] in (b"400", b"404", b"431", b"501")
        assert backend.heard == b""


@pytest.mark.parametrize(
    ("request_", "heard"),
    [
        (GET + "X-A: 1\r\n Transfer-Encoding: chunked\r\n\r\n", b"x-a: 1 Transfer-Encoding: chunked\r\n"),
        (GET + "X-A: a\rX-B: b\r\n\r\n", b"x-a: aX-B: b\r\n"),
        ("GET http://me:pw@h.test/ HTTP/1.1\r\nHost: other\r\n\r\n", b"host: h.test\r\n"),
    ],
    ids=["folded", "a bare CR", "a user and another host"],
)
async def test_what_others_may_read_otherwise_is_passed_on_as_it_was_read(gateway, request_: str, heard: bytes) -> None:
    async with Backend() as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        assert (await exchange(gateway.port, request_.encode())).endswith(b"ok")
        assert heard in backend.heard
        assert b"pw" not in backend.heard


async def test_headers_between_neighbours_stay_there(gateway) -> None:
    head = (
        "POST / HTTP/1.1\r\nHost: h.test\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n"
        "Keep-Alive: 1\r\nTE: trailers\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: x\r\nUpgrade: h2c\r\n"
        "X-Yours: 2\r\nContent-Length: 2\r\n\r\n{}"
    )
    async with Backend() as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        await read_all(gateway.port, head.encode())
    heard = {line.partition(":")[0].lower() for line in backend.heard.decode().split("\r\n")[1:] if line}
    forwarded = {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"}
    assert heard - {"te"} == {"host", "content-length", "x-yours", *forwarded}
    assert b"host: h.test\r\n" in backend.heard


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-A: a\nX-B: b\0\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"",
    ],
)
async def test_a_backend_that_speaks_no_http(gateway, answer: bytes) -> None:
    async with Backend(answer) as backend:
        await gateway.service("s", (backend.port, True))
        await gateway.route("h.test", ("s", 1))
        got = await exchange(gateway.port, b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 502 ")


async def test_a_client_that_sends_no_more_is_let_go(tmp_path) -> None:
    limits = Limits(headers=0.2, idle=0.2)
    async with running_gateway(tmp_path, Front(limits=limits)) as quick:
        for begun in (b"GET / HTTP/1.1\r\nHost: h", b""):
            reader, writer = await asyncio.open_connection("127.0.0.1", quick.port)
            writer.write(begun)
            async with asyncio.timeout(30):
                await reader.read()
            writer.close()


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET / HTTP/1.1\r\nHost: h.test\r\n", b"POST / HTTP/1.1\r\nHost: h.test\r\nContent-Length: 9\r\n\r\nx"],
)
async def test_a_connection_that_its_client_half_closes_ends(gateway, begun: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(begun)
    writer.write_eof()
    async with asyncio.timeout(30):  # less than a client may take to send its headers
        await reader.read()
    writer.close()


# -- whatever comes ---------------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [b"GET ", b"POST ", b"CONNECT ", b"http://", b"/", b"h.test", b":80", b":x", b"@", b"?a=b", b"#", b"%00", b"..",
     b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b"Host: h.test\r\n", b"Host: ", b"Content-Length: 3\r\n", b"X: y\r\n",
     b"Connection: close\r\n", b"Transfer-Encoding: chunked\r\n", b"Origin: http://h.test\r\n", b"\r\n", b"\n",
     b"Expect: 100-continue\r\n", b"\0", b"0\r\n\r\n", b"3\r\nabc\r\n"]
)  # fmt: skip
BYTES = st.lists(WORDS | st.binary(max_size=6), max_size=20).map(b"".join)
HEAD = b"POST / HTTP/1.1\r\nHost: h.test\r\n"


@given(st.lists(BYTES | BYTES.map(HEAD.__add__), min_size=1, max_size=30))
@example([HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"])
@example([HEAD + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n"])
@budget(20)
@pytest.mark.asyncio(loop_scope="session")
async def test_any_bytes(shared, requests: list[bytes]) -> None:
    """Every answer is one of HTTP and none is a failure of the gateway's own."""
    async with running_sites() as sites:
        await shared.service("s", (await sites(named("served")), True))
        await shared.route("h.test", ("s", 1))
        for request in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", shared.port)
            writer.write(request)
            writer.write_eof()
            async with asyncio.timeout(30):
                answer = await reader.read()
            writer.close()
            assert not answer or answer.startswith(b"HTTP/1.")
            assert b" 500 " not in answer
    await shared.clear()
