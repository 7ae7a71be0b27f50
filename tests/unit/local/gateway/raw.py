"""Bytes to the gateway as they are written, and servers: one that says who it is, one that answers in capitals."""

from __future__ import annotations

import asyncio

from aiohttp import web


def named(name: str):
    async def handler(request):
        return web.Response(text=name)

    return handler


async def upper(request: web.BaseRequest) -> web.StreamResponse:
    """Answers piece by piece while the request still comes."""
    response = web.StreamResponse()
    await response.prepare(request)
    async for chunk in request.content.iter_any():
        await response.write(chunk.upper())
    return response


async def exchange(port: int, request: bytes) -> bytes:
    """What is answered to these very bytes, up to the end of the announced body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(30):
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        body = await reader.readexactly(int(length.split(b":")[1]))
    writer.close()
    return head + body
