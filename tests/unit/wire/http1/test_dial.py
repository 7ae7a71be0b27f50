"""Connections through a proxy, against a real one of a few lines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from tests.unit.wire.http1.peer import GET, answers_forever, peer

from isvc.wire.http1.dial import Proxy
from isvc.wire.http1.pool import Pool


@asynccontextmanager
async def proxy(answer: Callable[[bytes], bytes]) -> AsyncIterator[tuple[Proxy, list[bytes]]]:
    """A proxy that tunnels when its answer to CONNECT is a 200, and hangs up otherwise."""
    heads: list[bytes] = []

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)
        target.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(head := await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer(head))
        if b" 200 " in answer(head):
            host, port = head.split(b" ")[1].decode().rsplit(":", 1)
            inward, outward = await asyncio.open_connection(host, int(port))
            await asyncio.gather(pump(reader, outward), pump(inward, writer), return_exceptions=True)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield Proxy.parse(f"http://user:p%40ss@127.0.0.1:{port}"), heads
    finally:
        server.close()


def through(direct: Pool, chosen: Proxy) -> Pool:
    return Pool(direct._host, direct._port, limit=1, idle_seconds=60, proxy=chosen)


async def test_a_proxy_is_asked_for_a_tunnel():
    async with (
        peer(answers_forever) as (direct, _),
        proxy(lambda _: b"HTTP/1.1 200 Connected\r\n\r\n") as (chosen, heads),
    ):
        pool = through(direct, chosen)
        assert (await pool.exchange("GET", GET, None)).body == b"ok"
        await pool.close()
    assert heads[0].startswith(f"CONNECT 127.0.0.1:{direct._port} HTTP/1.1".encode())
    assert b"Proxy-Authorization: Basic dXNlcjpwQHNz" in heads[0]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "refused the connection: HTTP/1.1 407 Proxy Auth"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "did not answer as a proxy does"),
        (b"x" * 100_000, "did not answer as a proxy does"),
    ],
)
async def test_a_proxy_that_does_not_tunnel_is_one_clear_line(answer, complaint):
    async with peer(answers_forever) as (direct, _), proxy(lambda _: answer) as (chosen, _):
        with pytest.raises(ConnectionError, match=complaint):
            await through(direct, chosen).exchange("GET", GET, None)


@pytest.mark.parametrize("url", ["socks5://proxy:1080", "https://user:secret@proxy", "http://"])
def test_what_is_no_http_proxy_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match="only http:// proxies") as caught:
        Proxy.parse(url)
    assert "secret" not in str(caught.value)
