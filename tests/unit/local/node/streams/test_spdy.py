"""SPDY sessions against bytes as clients send them, and as they do not."""

from __future__ import annotations

import asyncio
import os
import struct
import zlib

import pytest

from isvc.local.node.streams.channel import Channel
from isvc.local.node.streams.spdy import SpdySession
from isvc.local.node.streams.spdy_headers import DICTIONARY, HeaderReader, HeaderWriter, Malformed

SYN_STREAM, SYN_REPLY, RST_STREAM, PING = 1, 2, 3, 6


def control(kind: int, payload: bytes, flags: int = 0) -> bytes:
    return struct.pack(">HHI", 0x8003, kind, flags << 24 | len(payload)) + payload


def opening(number: int, block: bytes) -> bytes:
    return control(SYN_STREAM, struct.pack(">IIH", number, 0, 0) + block)


def data(number: int, payload: bytes, *, last: bool = False) -> bytes:
    return struct.pack(">II", number, last << 24 | len(payload)) + payload


class Wire:
    """A session with everything the client sends, and what it was sent back."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.all_read, self.left = asyncio.Event(), asyncio.Event()
        self.sent = b""
        self.opened: list[tuple[dict[str, str], Channel]] = []
        self.session = SpdySession(self._read, self._write, lambda *stream: self.opened.append(stream))

    async def _read(self) -> bytes:
        await asyncio.sleep(0)
        if self.pieces:
            return self.pieces.pop(0)
        self.all_read.set()
        await self.left.wait()
        return b""

    async def _write(self, data: bytes) -> None:
        self.sent += data

    async def run(self) -> Wire:
        """Until the client has sent everything and left."""
        self.left.set()
        await self.session.run()
        return self


def test_the_dictionary_is_that_of_the_standard():
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


async def test_a_stream_is_opened_read_and_written_in_any_pieces():
    headers = HeaderWriter()
    streams = opening(1, headers.write({"Streamtype": "stdin"})) + opening(3, headers.write({"streamType": "error"}))
    whole = (
        streams + data(1, b"some ") + data(1, b"input", last=True) + data(9, b"for nobody") + control(PING, b"\0\0\0\7")
    )
    wire = Wire(*(whole[at : at + 7] for at in range(0, len(whole), 7)))
    running = asyncio.create_task(wire.session.run())
    await wire.all_read.wait()
    assert [headers["streamtype"] for headers, _ in wire.opened] == ["stdin", "error"]
    stdin, error = (channel for _, channel in wire.opened)
    assert [await stdin.read(), await stdin.read(), await stdin.read()] == [b"some ", b"input", b""]
    assert wire.sent.endswith(control(PING, b"\0\0\0\7"))
    await error.write(b"bad")
    await error.close()
    assert wire.sent.endswith(data(3, b"bad") + data(3, b"", last=True))
    wire.left.set()
    await running
    assert await error.read() == b""


async def test_a_stream_that_was_reset_takes_no_more():
    wire = await Wire(opening(1, HeaderWriter().write({})) + control(RST_STREAM, struct.pack(">II", 1, 5))).run()
    ((_, channel),) = wire.opened
    assert await channel.read() == b""
    with pytest.raises(ConnectionResetError):
        await channel.write(b"late")


async def test_streams_beyond_the_limit_and_doubles_are_refused():
    headers = HeaderWriter()
    wire = await Wire(*(opening(number, headers.write({})) for number in (*range(1, 1025), 7, 4711))).run()
    assert len(wire.opened) == 1024
    refused = [control(RST_STREAM, struct.pack(">II", number, 3)) for number in (7, 4711)]
    assert wire.sent.endswith(b"".join(refused))


@pytest.mark.parametrize(
    "bad",
    [
        struct.pack(">HHI", 0x8002, SYN_STREAM, 0),
        control(SYN_STREAM, b"\0"),
        opening(1, b"not compressed"),
        opening(1, zlib.compressobj(zdict=b"another dictionary").flush()),
        control(PING, b""),
    ],
)
async def test_what_is_not_spdy_ends_the_session(bad):
    with pytest.raises(Malformed):
        await Wire(bad).run()


def test_headers_that_explode_are_refused():
    bomb = zlib.compressobj(9, zdict=DICTIONARY)
    with pytest.raises(Malformed, match="too large"):
        HeaderReader().read(bomb.compress(bytes(50 << 20)) + bomb.flush(zlib.Z_SYNC_FLUSH))


def test_random_blocks_are_refused_or_read():
    for _ in range(200):
        deflate = zlib.compressobj(zdict=DICTIONARY)
        block = deflate.compress(os.urandom(64)) + deflate.flush(zlib.Z_SYNC_FLUSH)
        try:
            HeaderReader().read(block)
        except Malformed:
            continue
