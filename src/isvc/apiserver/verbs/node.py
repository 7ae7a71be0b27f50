"""What only the node that runs a pod can answer: the API server asks it, as Kubernetes does.

A node answers over HTTP, or switches to another protocol on a connection of its own.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import NamedTuple

import orjson

from isvc.apiserver.access.identity import Identity
from isvc.apiserver.http.response import Response, Stream, Writer
from isvc.apiserver.store.store import Store
from isvc.kube.errors import ApiError, BadRequest, InternalError, NotFound, ServiceUnavailable
from isvc.kube.objects import Object, dig
from isvc.wire.failures import message_of
from isvc.wire.http1.message import encode_request, header_lines
from isvc.wire.http1.pool import Pool, Pools

TEXT = "text/plain"
_ANSWER_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_MAX_REFUSAL = 1 << 16


class Streams(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Nodes:
    def __init__(self, store: Store, identity: Identity) -> None:
        self._store = store
        self._identity = identity
        self._pools = Pools(limit=100, idle_seconds=60.0)

    @property
    def authorization(self) -> str:
        return f"Bearer {self._identity.kubelet_token}"

    async def close(self) -> None:
        await self._pools.close()

    async def pass_on(self, node: str, path: str) -> Response:
        """Returns the node's answer, which is read as the client takes it; raises what the node refuses."""
        async with AsyncExitStack() as opened:
            try:
                connection = self._pool(node).stream(self._request(node, "GET", path), self._tls, _ANSWER_SECONDS)
                answer = await opened.enter_async_context(connection)
                if answer.head.status != 200:
                    text = b"".join([piece async for piece in answer.pieces()])
                    raise _refusal(answer.head.status, text)
            except OSError as error:
                raise _no_answer(error) from None
            held = opened.pop_all()

        async def produce(writer: Writer) -> None:
            pieces = answer.pieces()
            async with held:
                await copy(lambda: anext(pieces, b""), writer)

        return Stream(produce, TEXT)

    async def read_json(self, node: str, path: str) -> Object:
        """Returns what the node answers, as a whole."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                reply = await self._pool(node).exchange("GET", self._request(node, "GET", path), self._tls)
        except OSError as error:
            raise _no_answer(error) from None
        if reply.status != 200:
            raise _refusal(reply.status, reply.body)
        found: Object = orjson.loads(reply.body)
        return found

    async def dial(self, node: str) -> Streams:
        address, port = self._endpoint(node)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return Streams(*await asyncio.open_connection(address, port, ssl=self._tls))
        except OSError as error:
            raise InternalError(f"Internal error occurred: node {node} did not answer: {error}") from None

    async def switch_protocol(
        self, node: str, method: str, path: str, headers: Iterable[tuple[str, str]]
    ) -> tuple[Streams, dict[str, str]]:
        """Opens a connection on which the node switches to the protocol in `headers`; also returns its headers."""
        streams = await self.dial(node)
        try:
            request = self._request(node, method, path, [("Connection", "Upgrade"), *headers])
            return streams, await switch(streams, request)
        except BaseException:
            streams.writer.close()
            raise

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._identity.client_context()

    def _pool(self, node: str) -> Pool:
        return self._pools.to(*self._endpoint(node))

    def _request(self, node: str, method: str, path: str, headers: Iterable[tuple[str, str]] = ()) -> bytes:
        lines = header_lines([("Host", node), ("Authorization", self.authorization), *headers])
        return encode_request(method, path, lines, None)

    def _endpoint(self, name: str) -> tuple[str, int]:
        """Returns the address and port at which a node answers."""
        entry = self._store.get("nodes", "", name)
        node = entry.parse() if entry else {}
        port = dig(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port")
        addresses = {each["type"]: each["address"] for each in dig(node, "status", "addresses") or ()}
        address = addresses.get("InternalIP") or addresses.get("Hostname")
        if not port or not address:
            raise NotFound(f'nodes "{name}" has no endpoint')
        return str(address), int(port)


async def copy(read: Callable[[], Awaitable[bytes]], writer: Writer) -> None:
    """Passes on what `read` returns, until it returns nothing or the client has left."""
    while True:
        reading = asyncio.ensure_future(read())
        await asyncio.wait((reading, writer.gone), return_when=asyncio.FIRST_COMPLETED)
        if writer.gone.done():
            reading.cancel()  # a quiet stream may have no more to say for hours
            return
        if not (data := reading.result()):
            return
        writer.write(data)
        await writer.drain()


async def switch(streams: Streams, request: bytes) -> dict[str, str]:
    """Returns the headers, in lower case, with which the other side switches protocols; raises what it refuses."""
    reader, writer = streams
    writer.write(request)
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
        raise _no_answer(error) from None
    status, *rest = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    code = status.split()[1]
    if code == "101":
        return headers
    length = headers.get("content-length", "")
    size = min(int(length), _MAX_REFUSAL) if length.isdigit() else _MAX_REFUSAL
    text = (await reader.read(size)).decode("utf-8", "replace")
    raise {"404": NotFound, "503": ServiceUnavailable}.get(code, BadRequest if code < "500" else InternalError)(text)


def _no_answer(error: Exception) -> InternalError:
    return InternalError(f"Internal error occurred: the node did not answer: {message_of(error)}")


def _refusal(status: int, body: bytes) -> ApiError:
    text = body.decode("utf-8", "replace").strip()
    return BadRequest(text) if status < 500 else InternalError(text)
