"""Bytes to the gateway as they are written, and a server that says who it is."""

from __future__ import annotations

import asyncio

from aiohttp import web


def named(name: str):
    async def handler(request):
        return web.Response(text=name)

    return handler


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
