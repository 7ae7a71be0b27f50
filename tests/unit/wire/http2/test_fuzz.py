"""Whatever bytes a client of HTTP/2 sends: the connection ends or goes on, and nothing is raised."""

from __future__ import annotations

import asyncio
from typing import Any

from hpack import Encoder
from hyperframe.frame import SettingsFrame
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import budget

from isvc.wire.http2.server import ServerConnection
from isvc.wire.http2.stream import Stream

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + SettingsFrame(0).serialize()
HEAD = Encoder().encode([(":method", "GET"), (":scheme", "http"), (":authority", "h.test"), (":path", "/")])


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


PAYLOADS = st.sampled_from([b"", HEAD, HEAD[:-1], b"\0" * 4, b"\xff" * 5, b"12345678", b"\0\4\0\0\0\0"]) | st.binary(
    max_size=20
)
FRAMES = st.builds(
    frame, st.integers(0, 11), st.integers(0, 255), st.sampled_from([0, 1, 2, 3, 5, 2**31 - 1, 2**31 + 1]), PAYLOADS
)
BYTES = st.lists(FRAMES | st.binary(max_size=12), max_size=25).map(b"".join)


class Transport(asyncio.Transport):
    """A peer that takes everything and says no more."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def write(self, data: Any) -> None:
        assert not self.ended

    def close(self) -> None:
        self.ended = True

    abort = close

    def is_closing(self) -> bool:
        return self.ended

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def answer(stream: Stream, connection: ServerConnection) -> None:
    async for _ in stream:
        pass
    stream.send_headers([(b":status", b"200")])
    await stream.send(b"ok", end=True)


@given(st.lists(BYTES, max_size=4))
@budget(200)
def test_any_frames(pieces: list[bytes]) -> None:
    asyncio.run(_send(pieces))


async def _send(pieces: list[bytes]) -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
    connection = ServerConnection(answer, set())
    transport = Transport()
    connection.connection_made(transport)
    for piece in (PREFACE, *pieces):
        if not transport.ended:
            connection.data_received(piece)
        for _ in range(5):
            await asyncio.sleep(0)
    connection.connection_lost(None)
    for _ in range(5):
        await asyncio.sleep(0)
    assert problems == []
    assert connection.streams == {}
