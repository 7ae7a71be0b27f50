"""One connection, of a server or a client: frames in, what they say to their streams, frames out.

A connection costs at most its window of memory for what is not read yet, and no more than the transport's high-water
mark for what the peer does not take: until it does, nothing more is read from it, so that frames which ask for an
answer (PING, SETTINGS) cannot pile up. Frames that achieve nothing are counted, and too many end the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, Final, cast

from h2 import events
from h2.config import H2Configuration
from h2.connection import ConnectionInputs, ConnectionState, H2Connection, H2ConnectionStateMachine
from h2.errors import ErrorCodes
from h2.exceptions import H2Error, ProtocolError
from h2.settings import SettingCodes, Settings

from isvc.wire.http2.encoder import CachingEncoder
from isvc.wire.http2.quota import Quota
from isvc.wire.http2.stream import Broken, Headers, Stream

_STREAM_WINDOW: Final = 1 << 17
_CONNECTION_WINDOW: Final = 1 << 24
_DEFAULT_WINDOW: Final = 65_535
_MAX_HEADERS: Final = 1 << 16
_MAX_STREAMS: Final = 256


class _StateMachine(H2ConnectionStateMachine):
    """GOAWAY ends no stream that is under way (RFC 9113, 6.8); h2's own machine takes it for the end of all."""

    _transitions = {  # noqa: RUF012 - as h2 has it
        **H2ConnectionStateMachine._transitions,
        **{
            (state, ConnectionInputs.RECV_GOAWAY): (None, state)
            for state in (ConnectionState.CLIENT_OPEN, ConnectionState.SERVER_OPEN)
        },
    }


class Connection(asyncio.Protocol):
    patience = 75.0  # seconds for which a peer may take nothing of what it asked for

    def __init__(self, *, client_side: bool) -> None:
        self._loop = asyncio.get_running_loop()
        config = H2Configuration(
            client_side=client_side,
            header_encoding=None,
            validate_inbound_headers=not client_side,  # a client looks itself, at less cost
            validate_outbound_headers=False,
            normalize_outbound_headers=False,
        )
        self._h2 = H2Connection(config)
        self._h2.state_machine = _StateMachine()
        self._h2.encoder = CachingEncoder()
        self._h2.local_settings = Settings(client=client_side, initial_values=self._settings(client_side))
        self._h2.max_inbound_frame_size = self._h2.local_settings.max_frame_size
        self.streams: dict[int, Stream] = {}
        self.transport: asyncio.Transport
        self._writable = asyncio.Event()
        self._writable.set()
        self._flush_due = False
        self._idle_frames = Quota(burst=2000, per_second=200)
        self._expected_updates = 0  # of windows: at most one of the stream's and one of the connection's for each DATA
        self.closed = False

    @staticmethod
    def _settings(client_side: bool) -> dict[SettingCodes, int]:
        settings = {
            SettingCodes.INITIAL_WINDOW_SIZE: _STREAM_WINDOW,
            SettingCodes.MAX_CONCURRENT_STREAMS: _MAX_STREAMS,
            SettingCodes.MAX_HEADER_LIST_SIZE: _MAX_HEADERS,
        }
        return settings | ({SettingCodes.ENABLE_PUSH: 0} if client_side else {})

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.peername = transport.get_extra_info("peername")  # asks the kernel every time
        self.sockname = transport.get_extra_info("sockname")
        self.ssl_context = transport.get_extra_info("sslcontext")
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_CONNECTION_WINDOW - _DEFAULT_WINDOW)
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self._writable.set()
        self._fail_all(Broken("the connection was cut"))

    def pause_writing(self) -> None:
        self._writable.clear()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        self.flush()  # h2 forgets what is not sent yet when the peer says goodbye
        try:
            received = self._h2.receive_data(data)
        except ProtocolError as error:
            self.flush()
            self.abandon(f"the peer breaks the rules of HTTP/2: {error}")
            return
        for event in received:
            if handler := self._HANDLERS.get(type(event)):
                handler(self, event)
        self.flush_soon()

    # Events

    def _on_data(self, event: events.DataReceived) -> None:
        data, size, number = event.data or b"", event.flow_controlled_length or 0, event.stream_id or 0
        stream = self.streams.get(number)
        if stream is None:  # reset meanwhile
            self.consumed(number, size)
            return
        if size > len(data):  # padding, which nobody reads
            self.consumed(number, size - len(data))
        if data:
            stream.received(data)
        elif event.stream_ended is None:
            self._achieved_nothing(event)

    def _on_end(self, event: events.StreamEnded) -> None:
        if stream := self.streams.get(event.stream_id or 0):
            stream.received_end()

    def _on_trailers(self, event: events.TrailersReceived) -> None:
        if stream := self.streams.get(event.stream_id or 0):
            stream.received_trailers(cast("Headers", event.headers or []))

    def _on_reset(self, event: events.StreamReset) -> None:
        if stream := self.streams.get(event.stream_id or 0):
            stream.fail(Broken(f"the peer reset the stream: {ErrorCodes(event.error_code or 0).name}"))

    def _on_window(self, event: events.WindowUpdated) -> None:
        if self._expected_updates:
            self._expected_updates -= 1
        else:
            self._achieved_nothing(event)
        if event.stream_id:
            if stream := self.streams.get(event.stream_id):
                stream.may_write()
        else:
            self._all_may_write()

    def _on_settings(self, event: events.RemoteSettingsChanged) -> None:
        self._achieved_nothing(event)
        self._all_may_write()

    def _achieved_nothing(self, event: events.Event) -> None:
        if not self._idle_frames.spend():
            self.abandon("the peer sends frames that achieve nothing")

    def _all_may_write(self) -> None:
        for stream in list(self.streams.values()):
            stream.may_write()

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        events.DataReceived: _on_data,
        events.StreamEnded: _on_end,
        events.TrailersReceived: _on_trailers,
        events.StreamReset: _on_reset,
        events.WindowUpdated: _on_window,
        events.RemoteSettingsChanged: _on_settings,
        events.PingReceived: _achieved_nothing,
        events.PriorityUpdated: _achieved_nothing,
        events.UnknownFrameReceived: _achieved_nothing,
    }

    # For streams

    def send_headers(self, number: int, headers: Headers, *, end: bool) -> None:
        self._do(lambda: self._h2.send_headers(number, headers, end_stream=end))

    def send_data(self, number: int, data: bytes, *, end: bool) -> None:
        self._expected_updates += 2
        self._do(lambda: self._h2.send_data(number, data, end_stream=end))

    def room(self, number: int) -> int:
        """Returns how many bytes may be sent at once."""
        try:
            return max(0, min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size))
        except H2Error as error:
            raise Broken(str(error)) from None

    def consumed(self, number: int, size: int) -> None:
        """So much was read, and may be sent again."""
        if size and not self.closed:
            self._do(lambda: self._h2.acknowledge_received_data(size, number))

    def reset(self, number: int, code: ErrorCodes) -> None:
        if not self.closed:
            self._do(lambda: self._h2.reset_stream(number, code))

    def forget(self, number: int, unread: int) -> None:
        self.streams.pop(number, None)
        self.consumed(number, unread)

    async def drain(self) -> None:
        if not self._writable.is_set():
            try:
                async with asyncio.timeout(self.patience):
                    await self._writable.wait()
            except TimeoutError:
                self.abandon(f"the peer took nothing for {self.patience:g} s")

    def _do(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (H2Error, KeyError) as error:
            raise Broken(str(error)) from None
        self.flush_soon()

    # Ends and output

    def abandon(self, reason: str) -> None:
        """Ends the connection because of what the peer does, or does not."""
        if self.closed:
            return
        self.close(ErrorCodes.ENHANCE_YOUR_CALM)
        self._fail_all(Broken(reason))

    def close(self, code: ErrorCodes = ErrorCodes.NO_ERROR) -> None:
        if self.closed:
            return
        self._h2.close_connection(code)
        self.flush()
        self.closed = True
        self.transport.close()
        self._loop.call_later(5, self.transport.abort)  # who does not even take the goodbye

    def _fail_all(self, error: Broken) -> None:
        for stream in list(self.streams.values()):
            stream.fail(error)

    def flush_soon(self) -> None:
        """Frames of one turn of the loop are sent together."""
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        self._flush_due = False
        if not self.closed and (data := self._h2.data_to_send()):
            self.transport.write(data)
