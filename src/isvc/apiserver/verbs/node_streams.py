"""Connections to a node that leave HTTP: the API server dials, and asks for another protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from isvc.apiserver.verbs.node import endpoint
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest, InternalError, NotFound, ServiceUnavailable
from isvc.wire.http1.message import encode_request, header_lines

_CONNECT_SECONDS = 10.0
_MAX_REFUSAL = 1 << 16


class Streams(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def dial(api: Api, node: str) -> Streams:
    address, port = endpoint(api, node)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return Streams(*await asyncio.open_connection(address, port, ssl=api.identity.client_context()))
    except (OSError, TimeoutError) as error:
        raise InternalError(f"Internal error occurred: node {node} did not answer: {error}") from None


async def switched(
    api: Api, node: str, method: str, path: str, headers: Iterable[tuple[str, str]]
) -> tuple[Streams, dict[str, str]]:
    """A connection on which the node has switched to the protocol in `headers`, and the headers of its answer."""
    streams = await dial(api, node)
    own = [("Host", node), ("Authorization", f"Bearer {api.identity.kubelet_token}"), ("Connection", "Upgrade")]
    try:
        return streams, await switch(streams, encode_request(method, path, header_lines([*own, *headers]), None))
    except BaseException:
        streams.writer.close()
        raise


async def switch(streams: Streams, request: bytes) -> dict[str, str]:
    """The headers, in lower case, with which the other side switches protocols; what it refuses is raised."""
    reader, writer = streams
    writer.write(request)
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
        raise InternalError(f"Internal error occurred: the node did not answer: {error}") from None
    status, *rest = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    code = status.split()[1]
    if code == "101":
        return headers
    length = headers.get("content-length", "")
    size = min(int(length), _MAX_REFUSAL) if length.isdigit() else _MAX_REFUSAL
    text = (await reader.read(size)).decode("utf-8", "replace")
    raise {"404": NotFound, "503": ServiceUnavailable}.get(code, BadRequest if code < "500" else InternalError)(text)
