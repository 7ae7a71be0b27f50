"""gRPC through the agent, with grpcio on both ends: trailers, deadlines, cancellation and streams are the two's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from hpack import Encoder
from tests.unit.pods.agent.relaying import Agent, listening, relaying
from tests.waiting import until

METHOD = "/inference.GRPCInferenceService/"


def _framed(message: bytes) -> bytes:
    return b"\0" + len(message).to_bytes(4, "big") + message


class _Service(grpc.GenericRpcHandler):  # type: ignore[misc]
    def __init__(self) -> None:
        self.cancelled = asyncio.Event()
        self.time_left: float | None = None

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        name = details.method.rpartition("/")[2]
        handler: Callable[..., Any] = getattr(self, name)
        kind = grpc.stream_stream_rpc_method_handler if name == "Chat" else grpc.unary_unary_rpc_method_handler
        return kind(handler)

    async def Shout(self, request: bytes, context: Any) -> bytes:
        self.time_left = context.time_remaining()
        context.set_trailing_metadata((("x-model", "m-1"), ("x-raw-bin", b"\0\xff")))
        return request.upper()

    async def Fail(self, request: bytes, context: Any) -> bytes:
        await context.abort(grpc.StatusCode.NOT_FOUND, "no such model: ü")
        raise AssertionError

    async def Hang(self, request: bytes, context: Any) -> bytes:
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError

    async def Chat(self, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        async for request in requests:
            yield request.upper()


@asynccontextmanager
async def _through_agent(**options: Any) -> AsyncIterator[tuple[grpc.aio.Channel, _Service, Agent]]:
    service = _Service()
    server = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    server.add_generic_rpc_handlers((service,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with relaying(port, **options) as agent:
            unlimited = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
            async with grpc.aio.insecure_channel(f"127.0.0.1:{agent.port}", options=unlimited) as channel:
                yield channel, service, agent
    finally:
        await server.stop(0)


@pytest.mark.parametrize("logs", [False, True])
async def test_trailers_and_deadlines_pass(logs: bool) -> None:
    async with _through_agent(logs=logs, room=64 << 20) as (channel, service, agent):
        for message in (b"hello", b"x" * (6 << 20)):
            call = channel.unary_unary(METHOD + "Shout")(message, timeout=50)
            assert await call == message.upper()
            assert dict(await call.trailing_metadata()) == {"x-model": "m-1", "x-raw-bin": b"\0\xff"}
            assert service.time_left is not None
            assert 0 < service.time_left < 60  # gRPC rounds it up
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await channel.unary_unary(METHOD + "Fail")(b"x")
        assert (failed.value.code(), failed.value.details()) == (grpc.StatusCode.NOT_FOUND, "no such model: ü")
        if logs:
            await until(lambda: len(agent.kept.events) == 6)
            first, second = sorted(agent.kept.events[:2], key=lambda event: event.kind)
            assert (first.payload, second.payload) == (_framed(b"hello"), _framed(b"HELLO"))
            assert first.content_type == "application/grpc"
            assert len(agent.kept.events[2].payload) == (6 << 20) + 5
            assert agent.ledger.held == 0


@pytest.mark.parametrize("logs", [False, True])
async def test_streams_go_both_ways_at_once(logs: bool) -> None:
    async with _through_agent(logs=logs) as (channel, _, agent):
        call = channel.stream_stream(METHOD + "Chat")()
        for word in (b"one", b"two", b"three"):
            await call.write(word)
            assert await call.read() == word.upper()
        await call.done_writing()
        assert await call.read() == grpc.aio.EOF
        if logs:
            await until(lambda: len(agent.kept.events) == 2)
            assert agent.kept.events[0].payload == b"".join(map(_framed, (b"one", b"two", b"three")))


@pytest.mark.parametrize("logs", [False, True])
async def test_cancellation_and_deadlines_reach_the_model_server(logs: bool) -> None:
    async with _through_agent(logs=logs) as (channel, service, agent):
        call = channel.unary_unary(METHOD + "Hang")(b"x")
        waiting = asyncio.ensure_future(call.code())
        if logs:
            await until(lambda: agent.kept.kinds == ["request"])
        call.cancel()
        assert await waiting == grpc.StatusCode.CANCELLED
        with pytest.raises(grpc.aio.AioRpcError) as late:
            await channel.unary_unary(METHOD + "Hang")(b"x", timeout=0.2)
        assert late.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        await asyncio.wait_for(service.cancelled.wait(), 60)
        await until(lambda: agent.ledger.held == 0)


async def test_many_calls_on_one_connection_are_kept_apart() -> None:
    async with _through_agent(logs=True) as (channel, _, agent):
        shout = channel.unary_unary(METHOD + "Shout")
        messages = [b"m%d-" % number + b"y" * number for number in range(100)]
        metadata = [("x-user", "ada"), ("x-long", "z" * 3000)]  # fills the table of headers more than once
        answers = await asyncio.gather(*(shout(message, metadata=metadata) for message in messages))
        assert answers == [message.upper() for message in messages]
        await until(lambda: len(agent.kept.events) == 200)
    requests = {event.id: event.payload for event in agent.kept.events if event.kind == "request"}
    responses = {event.id: event.payload for event in agent.kept.events if event.kind == "response"}
    assert sorted(requests.values()) == sorted(map(_framed, messages))
    assert {key: payload[5:].upper() for key, payload in requests.items()} == {
        key: payload[5:] for key, payload in responses.items()
    }
    assert all(event.metadata == {"X-User": ["ada"]} for event in agent.kept.events)


async def test_a_connection_that_cannot_be_followed_passes_and_is_counted() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readexactly(len(sent)))
        writer.close()

    received: list[bytes] = []
    headers_that_are_none = b"\0\0\x03\x01\x05\0\0\0\x01\xff\xff\xff"
    sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + headers_that_are_none + b"x" * 100
    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    async with relaying(server.sockets[0].getsockname()[1], logs=True) as agent:
        _, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        writer.write(sent)
        await until(lambda: received == [sent])
        writer.close()
        assert agent.ledger.dropped == 1
    server.close()


async def test_a_connection_that_ends_within_a_request_lets_go_of_its_memory() -> None:
    async def swallow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(-1)
        writer.close()

    def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
        return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload

    headers = Encoder().encode([(":method", "POST"), (":path", "/"), (":scheme", "http"), (":authority", "x")])
    opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"")
    async with listening(swallow) as server, relaying(server, logs=True) as agent:
        _, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        writer.write(opening + frame(1, 4, 1, headers) + frame(0, 0, 1, b"x" * 9000))
        await until(lambda: agent.ledger.held == 9000)
        writer.close()
        await until(lambda: agent.ledger.held == 0)
