"""A gRPC server that echoes, whatever the method's name says; bytes stay bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from grpc import aio

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


class _Echo(grpc.GenericRpcHandler):  # type: ignore[misc]
    def service(self, details: Any) -> Any:
        match details.method.rpartition("/")[2]:
            case "Unary":
                return grpc.unary_unary_rpc_method_handler(self.unary)
            case "Fail":
                return grpc.unary_unary_rpc_method_handler(self.fail)
            case "Both":
                return grpc.stream_stream_rpc_method_handler(self.both)
            case "Hang":
                return grpc.unary_unary_rpc_method_handler(self.hang)
        return None

    def __init__(self) -> None:
        self.hanging, self.cancelled = asyncio.Event(), asyncio.Event()

    async def unary(self, message: bytes, context: Any) -> bytes:
        metadata = dict(context.invocation_metadata())
        context.set_trailing_metadata((("echoed", metadata.get("say", "")),))
        return message.upper()

    async def fail(self, message: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not today: ü")
        return b""

    async def both(self, messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for message in messages:
            yield message.upper()

    async def hang(self, message: bytes, context: Any) -> bytes:
        self.hanging.set()
        try:
            await asyncio.sleep(600)
        finally:
            self.cancelled.set()
        return b""


@asynccontextmanager
async def echoing() -> AsyncIterator[tuple[_Echo, int]]:
    server = aio.server(options=OPTIONS)
    echo = _Echo()
    server.add_generic_rpc_handlers((echo,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield echo, port
    finally:
        await server.stop(0)


@asynccontextmanager
async def channel_to(port: int) -> AsyncIterator[aio.Channel]:
    options = [*OPTIONS, ("grpc.default_authority", "h.test"), ("grpc.enable_http_proxy", 0)]
    async with aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        yield channel
