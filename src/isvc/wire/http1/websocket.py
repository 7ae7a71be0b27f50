"""WebSockets (RFC 6455) on a tunnel. Frames are parsed and checked by `websockets`; slow peers get back-pressure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.utils import accept_key

from isvc.wire.http1.tunnel import Tunnel


class BadHandshake(ValueError):
    """The request is not the opening handshake of a WebSocket, or asks for none of our protocols."""


def is_handshake(headers: Mapping[str, str]) -> bool:
    return headers.get("upgrade", "").lower() == "websocket"


def accept(headers: Mapping[str, str], protocols: Sequence[str] = ()) -> tuple[str, dict[str, str]]:
    """Returns the first protocol that the client offers and we know, and the headers that accept it.

    A client that offers none gets a connection without a protocol if "" is among `protocols`.
    """
    key = headers.get("sec-websocket-key", "")
    if headers.get("sec-websocket-version") != "13" or not key:
        raise BadHandshake("the request is not a WebSocket handshake of version 13")
    offered = [each.strip() for each in headers.get("sec-websocket-protocol", "").split(",") if each.strip()]
    chosen = next((each for each in offered or [""] if each in protocols), None)
    if chosen is None:
        known = ", ".join(each for each in protocols if each)
        raise BadHandshake(f"none of the WebSocket protocols {', '.join(offered)} is known here, only {known}")
    answer = {"Upgrade": "websocket", "Sec-WebSocket-Accept": accept_key(key)}
    if chosen:
        answer["Sec-WebSocket-Protocol"] = chosen
    return chosen, answer


class WebSocket:
    """The server's end."""

    def __init__(self, tunnel: Tunnel, max_size: int = 1 << 20) -> None:
        """Messages longer than `max_size` end the connection."""
        self._tunnel = tunnel
        self._protocol = Protocol(Side.SERVER, max_size=max_size)
        self._pieces: list[bytes] = []
        self._messages: deque[bytes] = deque()
        self._ended = False

    async def receive(self) -> bytes | None:
        """Returns the next message that is not empty, text or binary; None at the end, however it came."""
        while not self._messages and not self._ended:
            data = await self._tunnel.read()
            if data:
                self._protocol.receive_data(data)
            else:
                self._protocol.receive_eof()
            for event in self._protocol.events_received():
                self._take(event)
            self._flush()
            await self._tunnel.drain()
            self._ended = not data or self._protocol.state is not State.OPEN
        return self._messages.popleft() if self._messages else None

    def _take(self, event: object) -> None:
        if not isinstance(event, Frame) or event.opcode not in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            return
        self._pieces.append(bytes(event.data))
        if event.fin:
            message, self._pieces = b"".join(self._pieces), []
            if message:
                self._messages.append(message)

    async def send(self, data: bytes, *, text: bool = False) -> None:
        """Returns when the peer keeps up; what comes after the end is dropped."""
        self.put(data, text=text)
        await self._tunnel.drain()

    def put(self, data: bytes, *, text: bool = False) -> None:
        """Sends without waiting."""
        if self._protocol.state is State.OPEN:
            (self._protocol.send_text if text else self._protocol.send_binary)(data)
            self._flush()

    def ping(self) -> None:
        """Has the connection fail if the peer is no longer there."""
        if self._protocol.state is State.OPEN:
            self._protocol.send_ping(b"")
            self._flush()

    def close(self, code: int = 1000) -> None:
        if self._protocol.state is State.OPEN:
            self._protocol.send_close(code)
            self._flush()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data:  # else: the end, which the connection sees to
                self._tunnel.write(data)
