"""A client of HTTP/2 that does what others would not, and a server that does so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from hyperframe.frame import Frame

PSEUDO = [(":method", "GET"), (":scheme", "http"), (":authority", "h.test"), (":path", "/")]


class RawClient:
    """Sends what it is told to, and collects what is answered."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        config = H2Configuration(
            client_side=True,
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
            validate_inbound_headers=False,
        )
        self.h2 = H2Connection(config)
        self.reader, self.writer = reader, writer
        self.events: list[events.Event] = []
        self.body: dict[int, bytes] = {}
        self.ended = False

    def start(self, **settings: int) -> None:
        self.h2.initiate_connection()
        self.send()

    def send(self, *frames: Frame) -> None:
        self.writer.write(self.h2.data_to_send() + b"".join(frame.serialize() for frame in frames))

    def ask(self, headers: list[tuple[str, str]] | None = None, *, end: bool = True) -> int:
        number = self.h2.get_next_available_stream_id()
        self.h2.send_headers(number, headers or PSEUDO, end_stream=end)
        self.send()
        return number

    async def until(self, *kinds: type[events.Event]) -> events.Event | None:
        """The next event of these kinds; None if the connection ends before."""
        async with asyncio.timeout(60):
            while True:
                for index, event in enumerate(self.events):
                    if isinstance(event, kinds):
                        del self.events[: index + 1]
                        return event
                self.events.clear()
                if not await self._receive():
                    return None

    async def _receive(self) -> bool:
        try:
            data = await self.reader.read(1 << 16)
        except ConnectionError:
            data = b""
        if not data:
            self.ended = True
            return False
        for event in self.h2.receive_data(data):
            if isinstance(event, events.DataReceived):
                number = event.stream_id or 0
                self.body[number] = self.body.get(number, b"") + (event.data or b"")
                self.h2.acknowledge_received_data(event.flow_controlled_length or 0, number)
            self.events.append(event)
        self.send()
        return True


@asynccontextmanager
async def raw_client(port: int) -> AsyncIterator[RawClient]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    client = RawClient(reader, writer)
    client.start()
    try:
        yield client
    finally:
        writer.close()


def status_of(event: events.Event | None) -> int:
    assert isinstance(event, events.ResponseReceived)
    return int(dict(event.headers or [])[b":status"])
