"""Logs payloads: a request and its answer become an event each, for a sink that no prediction waits for.

Copies of payloads are the only bodies that the agent holds, and all of them together have a bound. What finds no room,
or a sink that does not keep up, is dropped and counted.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol

from isvc.pods.agent.cloudevents import REQUEST, RESPONSE, Event
from isvc.pods.agent.http1 import Headers

log = logging.getLogger("isvc.pods.agent")

_MAX_BYTES = 64 << 20


class Sink(Protocol):
    """Where events go."""

    def put(self, event: Event) -> bool:
        """Takes an event on its way, without waiting; returns False where there is no room for it."""


class Ledger:
    """What payloads take of the memory, and what became of events."""

    def __init__(self, limit: int = _MAX_BYTES) -> None:
        self._limit = limit
        self.held = 0
        self.delivered = self.failed = self.dropped = 0

    def reserve(self, count: int) -> bool:
        if self.held + count > self._limit:
            return False
        self.held += count
        return True

    def release(self, count: int) -> None:
        self.held -= count

    def drop(self, count: int, why: str) -> None:
        before, self.dropped = self.dropped, self.dropped + count
        if self.dropped.bit_length() > before.bit_length():  # at 1, 2, 4, 8 …
            log.error("%s: %d events were dropped so far", why, self.dropped)


class Logger:
    """`mode` is all, request or response."""

    def __init__(self, sink: Sink, ledger: Ledger, mode: str, metadata_headers: Sequence[str]) -> None:
        self.sink, self.ledger = sink, ledger
        self.requests, self.answers = mode in ("all", "request"), mode in ("all", "response")
        self._metadata_headers = {name.lower(): name for name in metadata_headers}

    def begin(self, headers: Headers) -> Recording:
        metadata = {
            name: [_readable(value) for value in values]
            for lower, name in self._metadata_headers.items()
            if (values := headers.all(lower))
        }
        return Recording(self, headers, metadata)

    def lose(self, count: int) -> None:
        self.ledger.drop(count, "a connection could not be followed")


class Recording:
    """One request and its answer, while they pass. An answer is logged when it is a success and complete."""

    def __init__(self, logger: Logger, headers: Headers, metadata: dict[str, list[str]]) -> None:
        self._logger = logger
        self._arrived = datetime.now(UTC)
        self._id = headers.get("ce-id") or ordered_uuid()
        self._content_type = headers.get("content-type")
        self._trace = headers.get("traceparent")
        self._metadata = metadata
        self._request = _Copy(logger.ledger) if logger.requests else None
        self._answer = _Copy(logger.ledger) if logger.answers else None

    def keep_request(self, piece: bytes | bytearray) -> None:
        if self._request is not None:
            self._request.add(piece)

    def end_request(self) -> None:
        if self._request is not None:
            copy, self._request = self._request, None
            self._put(REQUEST, copy, self._arrived)

    def keep_answer(self, piece: bytes) -> None:
        if self._answer is not None:
            self._answer.add(piece)

    def end_answer(self, status: int) -> None:
        if self._answer is not None and status == 200:
            copy, self._answer = self._answer, None
            self._put(RESPONSE, copy, datetime.now(UTC))
        self.discard()

    def discard(self) -> None:
        """Gives up what is not complete."""
        for copy in (self._request, self._answer):
            if copy is not None:
                copy.give_up()
        self._request = self._answer = None

    def _put(self, kind: str, copy: _Copy, moment: datetime) -> None:
        ledger = self._logger.ledger
        if copy.content is None:
            ledger.drop(1, "a payload is too large to be held beside the others")
            return
        event = Event(kind, self._id, moment, self._content_type, bytes(copy.content), self._metadata, self._trace)
        if not self._logger.sink.put(event):
            ledger.release(len(event.payload))
            ledger.drop(1, "the sink does not keep up")


class _Copy:
    """A payload so far; its content is None once it was too large."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.content: bytearray | None = bytearray()

    def add(self, piece: bytes | bytearray) -> None:
        if self.content is None:
            return
        if self._ledger.reserve(len(piece)):
            self.content += piece
        else:
            self.give_up()

    def give_up(self) -> None:
        if self.content is not None:
            self._ledger.release(len(self.content))
            self.content = None


def ordered_uuid() -> str:
    """Returns a UUID of version 7: in the order of time, and so are the names of objects that begin with it."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10)) & ((1 << 74) - 1)
    return str(uuid.UUID(int=milliseconds << 80 | 7 << 76 | (random >> 62) << 64 | 2 << 62 | random & ((1 << 62) - 1)))


def _readable(value: str) -> str:
    """Returns a header's value as UTF-8, with what is none replaced."""
    return value.encode(errors="surrogateescape").decode(errors="replace")
