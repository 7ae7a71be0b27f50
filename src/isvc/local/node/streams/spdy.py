"""The server's side of SPDY/3.1, as far as Kubernetes clients use it: streams that the client opens.

`kubectl port-forward` speaks it within WebSocket messages, older clients directly after an upgrade. Windows are not
kept, as by the library of the clients; a stream that is not read makes the connection wait.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from isvc.local.node.streams.channel import Channel
from isvc.local.node.streams.spdy_headers import HeaderReader, HeaderWriter, Malformed

PROTOCOL: Final = "SPDY/3.1"
_CONTROL = 0x8003_0000  # the control bit and version 3
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING = 1, 2, 3, 6
_FIN = 1
_REFUSED_STREAM = 3
_MAX_STREAMS = 1024

Opened = Callable[[Mapping[str, str], Channel], None]
"""Called with the headers of a stream that the client opened, and the stream."""


class SpdySession:
    def __init__(
        self, read: Callable[[], Awaitable[bytes | None]], write: Callable[[bytes], Awaitable[None]], opened: Opened
    ) -> None:
        """`read` gives bytes as they come, nothing at the end."""
        self._read = read
        self._write = write
        self._opened = opened
        self._buffer = bytearray()
        self._headers_in, self._headers_out = HeaderReader(), HeaderWriter()
        self._channels: dict[int, Channel] = {}

    async def run(self) -> None:
        """Runs until the client leaves. Raises Malformed if it does not speak SPDY."""
        while data := await self._read():
            self._buffer += data
            while (frame := self._next_frame()) is not None:
                await self._take(*frame)
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.feed(b"")

    async def ping(self) -> None:
        await self._control(_PING, struct.pack(">I", 2))

    def _next_frame(self) -> tuple[int, int, bytes] | None:
        """Returns first word, flags and payload of a frame that is there as a whole."""
        if len(self._buffer) < 8:
            return None
        word, flags_and_size = struct.unpack_from(">II", self._buffer)
        size = flags_and_size & 0xFFFFFF
        if word & 0x8000_0000 and word & 0xFFFF_0000 != _CONTROL:
            raise Malformed("the client does not speak version 3 of SPDY")
        if len(self._buffer) < 8 + size:
            return None
        payload = bytes(self._buffer[8 : 8 + size])
        del self._buffer[: 8 + size]
        return word, flags_and_size >> 24, payload

    async def _take(self, word: int, flags: int, payload: bytes) -> None:
        if not word & 0x8000_0000:
            await self._data(word, flags, payload)
            return
        kind = word & 0xFFFF
        if kind in (_SYN_STREAM, _RST_STREAM, _PING) and len(payload) < 4:
            raise Malformed("a frame ends early")
        if kind == _SYN_STREAM:
            await self._open(int.from_bytes(payload[:4], "big"), flags, payload[10:])
        elif kind == _RST_STREAM:
            channel = self._channels.pop(int.from_bytes(payload[:4], "big"), None)
            if channel is not None:
                await channel.feed(b"")
        elif kind == _PING and payload[3] % 2:  # an odd number is the client's: it gets it back
            await self._control(_PING, payload[:4])

    async def _data(self, number: int, flags: int, payload: bytes) -> None:
        channel = self._channels.get(number)
        if channel is None:
            return
        if payload:
            await channel.feed(payload)
        if flags & _FIN:
            await channel.feed(b"")

    async def _open(self, number: int, flags: int, block: bytes) -> None:
        headers = self._headers_in.read(block)
        if number in self._channels or len(self._channels) >= _MAX_STREAMS:
            await self._control(_RST_STREAM, struct.pack(">II", number, _REFUSED_STREAM))
            return

        async def send(data: bytes, last: bool) -> None:
            if number not in self._channels:
                raise ConnectionResetError("the client has reset the stream")
            size = len(data) | (_FIN << 24 if last else 0)
            await self._write(struct.pack(">II", number, size) + data)

        channel = self._channels[number] = Channel(send)
        await self._control(_SYN_REPLY, struct.pack(">I", number) + self._headers_out.write({}))
        if flags & _FIN:
            await channel.feed(b"")
        self._opened(headers, channel)

    def forget(self, *channels: Channel) -> None:
        """Forgets streams of which both sides have ended."""
        self._channels = {number: each for number, each in self._channels.items() if each not in channels}

    async def _control(self, kind: int, payload: bytes) -> None:
        await self._write(struct.pack(">II", _CONTROL | kind, len(payload)) + payload)
