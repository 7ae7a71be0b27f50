"""Looks at the frames of a spliced HTTP/2 connection and records its requests and answers; it changes nothing.

A connection that it cannot follow any longer passes on as before, and goes unlogged, which is said and counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hpack import Decoder
from hpack.exceptions import HPACKError

from isvc.pods.agent.http1 import Headers
from isvc.pods.agent.logger import Logger, Recording
from isvc.wire.failures import message_of

log = logging.getLogger("isvc.pods.agent")

_REST_OF_PREFACE = len(b"SM\r\n\r\n")
_FRAME_HEAD = 9
_MAX_BLOCK = 1 << 18
_MAX_STREAMS = 1000
_LARGEST_TABLE = 1 << 20
_DATA, _HEADERS, _RESET, _SETTINGS, _PUSH_PROMISE, _CONTINUATION = 0, 1, 3, 4, 5, 9
_END_STREAM, _ACK, _END_HEADERS, _PADDED, _PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
_HEADER_TABLE_SIZE = 1


class Http2Tap:
    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._recordings: dict[int, Recording] = {}
        self._statuses: dict[int, int] = {}
        self._lost = False
        self._client = _Direction(self._request, self._see_frame, _REST_OF_PREFACE)
        self._server = _Direction(self._answer, self._see_frame)
        self._client.opposite, self._server.opposite = self._server, self._client

    def see_client(self, data: bytes) -> None:
        self._see(self._client, data)

    def see_server(self, data: bytes) -> None:
        self._see(self._server, data)

    def close(self) -> None:
        """Gives up what is not complete when the connection ends."""
        for recording in self._recordings.values():
            recording.discard()
        self._recordings.clear()

    def _see(self, direction: _Direction, data: bytes) -> None:
        if self._lost:
            return
        try:
            direction.feed(data)
        except (HPACKError, ValueError, IndexError) as error:
            self._lost = True
            log.error("an HTTP/2 connection is not logged any longer: %s", message_of(error))
            self._logger.lose(len(self._recordings) or 1)
            self.close()

    def _see_frame(self, direction: _Direction, kind: int, stream: int, content: bytes, ends: bool) -> None:
        """Takes what a frame says of a stream whose headers are known."""
        recording = self._recordings.get(stream)
        if recording is None:
            return
        if kind == _RESET:
            self._forget(stream)
        elif direction is self._client:
            recording.keep_request(content)
            if ends:
                recording.end_request()
        else:
            recording.keep_answer(content)
            if ends:
                recording.end_answer(self._statuses.get(stream, 0))
                self._forget(stream)

    def _request(self, stream: int, headers: Headers) -> None:
        if stream in self._recordings:
            return  # trailers
        if len(self._recordings) >= _MAX_STREAMS:
            self._logger.lose(1)
            return
        self._recordings[stream] = self._logger.begin(headers)

    def _answer(self, stream: int, headers: Headers) -> None:
        status = headers.get(":status")
        if stream in self._recordings and status.isdigit() and int(status) >= 200:
            self._statuses[stream] = int(status)

    def _forget(self, stream: int) -> None:
        self._recordings.pop(stream).discard()
        self._statuses.pop(stream, None)


class _Direction:
    """Cuts the bytes of one direction into frames, and its header blocks into headers."""

    opposite: _Direction

    def __init__(
        self,
        see_headers: Callable[[int, Headers], None],
        see_frame: Callable[[_Direction, int, int, bytes, bool], None],
        skip: int = 0,
    ) -> None:
        self._see_headers, self._see_frame, self._skip = see_headers, see_frame, skip
        self._bytes = bytearray()
        self._block = b""
        self._ends = False
        self._decoder = Decoder()

    def feed(self, data: bytes) -> None:
        self._bytes += data
        at = 0
        if self._skip and len(self._bytes) >= self._skip:
            at, self._skip = self._skip, 0
        while not self._skip and len(self._bytes) - at >= _FRAME_HEAD:
            end = at + _FRAME_HEAD + int.from_bytes(self._bytes[at : at + 3])
            if end > len(self._bytes):
                break
            stream = int.from_bytes(self._bytes[at + 5 : at + 9]) & 0x7FFFFFFF
            self._take(self._bytes[at + 3], self._bytes[at + 4], stream, bytes(self._bytes[at + _FRAME_HEAD : end]))
            at = end
        del self._bytes[:at]

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _DATA:
            self._see_frame(self, kind, stream, _without_padding(payload, flags), bool(flags & _END_STREAM))
        elif kind == _HEADERS:
            self._ends = bool(flags & _END_STREAM)
            self._take_block(flags, stream, _without_padding(payload, flags)[5 if flags & _PRIORITY else 0 :])
        elif kind == _PUSH_PROMISE:
            self._ends = False
            self._take_block(flags, 0, _without_padding(payload, flags)[4:])
        elif kind == _CONTINUATION:
            self._take_block(flags, stream, payload)
        elif kind == _RESET:
            self._see_frame(self, kind, stream, b"", True)
        elif kind == _SETTINGS and not flags & _ACK:
            self._take_settings(payload)

    def _take_block(self, flags: int, stream: int, fragment: bytes) -> None:
        self._block += fragment
        if len(self._block) > _MAX_BLOCK:
            raise ValueError("its headers are too large")
        if flags & _END_HEADERS:
            block, self._block = self._block, b""
            pairs = self._decoder.decode(block, raw=True)
            if stream:
                self._see_headers(stream, Headers((_text(name), _text(value)) for name, value in pairs))
                if self._ends:
                    self._see_frame(self, _HEADERS, stream, b"", True)

    def _take_settings(self, payload: bytes) -> None:
        """A larger table for headers may be used by the opposite side; a smaller one is announced in its blocks."""
        for at in range(0, len(payload) - 5, 6):
            if int.from_bytes(payload[at : at + 2]) == _HEADER_TABLE_SIZE:
                size = min(int.from_bytes(payload[at + 2 : at + 6]), _LARGEST_TABLE)
                decoder = self.opposite._decoder
                decoder.max_allowed_table_size = max(decoder.max_allowed_table_size, size)


def _without_padding(payload: bytes, flags: int) -> bytes:
    return payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload


def _text(value: bytes) -> str:
    return bytes(value).decode(errors="surrogateescape")
