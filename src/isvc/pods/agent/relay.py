"""Connections through the agent: each client has one of its own to the model server, and bytes pass as they are.

Of HTTP/1.1 the relay knows where each message ends, so that probes are answered, predictions batched and payloads
logged. HTTP/2, WebSockets and whatever else a client and its server change to are spliced: gRPC's trailers, deadlines
and cancellations are theirs alone, and the logger looks at the frames without touching them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from isvc.pods.agent import http1
from isvc.pods.agent.batcher import MAX_BODY, Batcher
from isvc.pods.agent.http1 import Body, Head
from isvc.pods.agent.http2_tap import Http2Tap
from isvc.pods.agent.logger import Logger, Recording
from isvc.pods.agent.peer import Peer
from isvc.pods.agent.probe import Readiness, is_probe

log = logging.getLogger("isvc.pods.agent")

_MAX_HEAD = 1 << 16
_HEAD_SECONDS = 60.0
_CONNECT_SECONDS = 10.0
_LINGER_SECONDS = 5.0

Answer: TypeAlias = tuple[int, bytes, str]  # status, body, content type


@dataclass(frozen=True, slots=True)
class Settings:
    """What the relays of one agent have in common."""

    port: int  # of the model server
    readiness: Readiness
    batcher: Batcher | None = None
    logger: Logger | None = None


class _Refused(Exception):
    """A request that the agent answers itself, with an error, and after which it closes."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Relay:
    """One client's connection."""

    def __init__(self, settings: Settings, client: Peer) -> None:
        self._settings = settings
        self._client = client
        self._server: Peer | None = None
        self._busy = False  # with a request, or with what is spliced
        self._last = False

    async def serve(self) -> None:
        """Returns when the connection has come to its end."""
        try:
            while await self._exchange() and not self._last:
                pass
        except _Refused as refused:
            await self._refuse(refused.status, str(refused))
        except http1.Malformed as error:
            await self._refuse(400, str(error))
        except (http1.Cut, TimeoutError) as error:
            log.info("a connection ended early: %s", str(error) or "the head of a request took too long")
        finally:
            self.close()

    def leave(self) -> None:
        """Closes the connection, once the request under way is answered."""
        self._last = True
        if not self._busy:
            self.close()

    def close(self) -> None:
        self._client.close()
        if self._server is not None:
            self._server.close()

    async def _exchange(self) -> bool:
        """Passes one request and its answer on; returns whether another may follow."""
        raw = await self._next_head()
        if raw is None:
            return False
        if raw == http1.HTTP2_PREFACE:
            await self._splice_http2()
            return False
        request, body = http1.parse_request(raw)
        settings = self._settings
        if is_probe(request.headers):
            return await self._answer(request, body, None, lambda _: settings.readiness.answer(request.headers))
        recording = settings.logger.begin(request.headers) if settings.logger else None
        try:
            if (batcher := settings.batcher) is not None and batcher.takes(request):
                return await self._answer(request, body, recording, lambda content: batcher.predict(request, content))
            return await self._forward(request, body, recording)
        finally:
            if recording is not None:
                recording.discard()

    async def _next_head(self) -> bytes | None:
        self._busy = self._client.waiting > 0
        if not self._busy and not await self._client.more():
            return None
        self._busy = True
        if head := self._client.take_until(http1.END_OF_HEAD):
            return head
        async with asyncio.timeout(_HEAD_SECONDS):
            return await http1.take_head(self._client, _MAX_HEAD)

    # Answers of the agent's own

    async def _answer(
        self, request: Head, body: Body, recording: Recording | None, handle: Callable[[bytes], Awaitable[Answer]]
    ) -> bool:
        content = bytearray()

        def keep(piece: bytes) -> None:
            content.extend(piece)
            if len(content) > MAX_BODY:
                raise _Refused(413, f"a prediction that is batched has at most {MAX_BODY >> 20} MiB")

        if request.headers.get("expect").lower() == "100-continue":
            self._client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        await http1.take_body(self._client, body, keep)
        if recording is not None:
            recording.keep_request(content)
            recording.end_request()
        status, answer, content_type = await handle(bytes(content))
        if recording is not None:
            recording.keep_answer(answer)
            recording.end_answer(status)
        self._client.write(http1.encode_response(status, answer, content_type, close=not request.keep_alive))
        await self._client.drain()
        return request.keep_alive

    async def _refuse(self, status: int, message: str) -> None:
        self._client.write(http1.encode_response(status, f"{message}\n".encode(), close=True))
        await self._linger()

    async def _linger(self) -> None:
        """Lets the client read an answer that came before it had sent everything, which a close would take away."""
        self._client.finish()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while self._client.waiting or await self._client.more():
                    self._client.take()

    # Answers of the model server

    async def _forward(self, request: Head, body: Body, recording: Recording | None) -> bool:
        server = await self._connect()
        http1.copy_head(request, self._client, body, server, recording.keep_request if recording else None)
        self._client.pass_end()
        upload = asyncio.create_task(self._upload(server, body, recording)) if not body.done else None
        if recording is not None and upload is None:
            recording.end_request()
        try:
            answer = await self._download(request, server, recording)
        except (http1.Cut, http1.Malformed) as error:
            if upload is not None and upload.done() and (cause := upload.result()):
                raise cause from None  # it is the request that was cut, or malformed
            raise _Refused(502, f"the model server does not answer: {error}") from None
        finally:
            if upload is not None and not upload.done():
                upload.cancel()
        if answer.status == 101:
            await self._splice(server)
        if not body.done:
            await self._linger()
        return body.done and request.keep_alive and answer.keep_alive

    async def _upload(self, server: Peer, body: Body, recording: Recording | None) -> Exception | None:
        """Returns what kept the rest of a request from being passed on."""
        try:
            await http1.copy_body(self._client, body, server, recording.keep_request if recording else None)
            self._client.pass_end()
        except (http1.Cut, http1.Malformed) as error:
            server.abort()
            return error
        if recording is not None:
            recording.end_request()
        return None

    async def _download(self, request: Head, server: Peer, recording: Recording | None) -> Head:
        """Raises what is wrong with an answer as long as nothing of it was passed on; after that it is cut off."""
        while True:
            raw = await http1.take_head(server, _MAX_HEAD)
            if raw is None:
                raise http1.Cut("it closed the connection")
            answer, body = http1.parse_response(raw, request.method)
            if answer.status >= 200 or answer.status == 101:
                break
            self._client.write(raw)
        keep = recording.keep_answer if recording else None
        try:
            http1.copy_head(answer, server, body, self._client, keep)
            await http1.copy_body(server, body, self._client, keep)
        except (http1.Cut, http1.Malformed) as error:
            log.error("%s %s: the answer was cut: %s", request.method, request.target, error)
            self._client.abort()
        else:
            if recording is not None:
                recording.end_answer(answer.status)
        return answer

    async def _connect(self) -> Peer:
        """Returns the client's connection to the model server; a new one where that has closed the last."""
        if self._server is not None and not self._server.ended and not self._server.waiting:
            return self._server
        if self._server is not None:
            self._server.close()
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                loop = asyncio.get_running_loop()
                _, self._server = await loop.create_connection(Peer, "127.0.0.1", self._settings.port)
        except OSError as error:  # a timeout is one
            log.error("the model server cannot be reached on port %d: %s", self._settings.port, error)
            raise _Refused(502, f"the model server does not answer: {error.strerror or 'no connection'}") from None
        self._client.end_with(self._server)
        return self._server

    # What has left HTTP/1.1

    async def _splice_http2(self) -> None:
        try:
            server = await self._connect()
        except _Refused:
            return  # closed: a client of HTTP/2 cannot read a refusal in HTTP/1.1
        server.write(http1.HTTP2_PREFACE)
        tap = Http2Tap(self._settings.logger) if self._settings.logger else None
        try:
            await self._splice(server, tap)
        finally:
            if tap is not None:
                tap.close()

    async def _splice(self, server: Peer, tap: Http2Tap | None = None) -> None:
        self._client.splice(server, tap.see_client if tap else None)
        server.splice(self._client, tap.see_server if tap else None)
        await asyncio.wait((self._client.lost, server.lost))
