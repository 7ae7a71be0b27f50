"""gRPC through the gateway, with grpcio on both sides."""

from __future__ import annotations

import asyncio

import grpc
import pytest
import pytest_asyncio
from tests.unit.local.gateway.grpc_echo import channel_to, echoing

from isvc.serving.workload.service import H2C


@pytest_asyncio.fixture(loop_scope="session")
async def echo(gateway):
    async with echoing() as (server, port), channel_to(gateway.port) as channel:
        await gateway.service("s", (port, True), appProtocol=H2C)
        await gateway.route("h.test", ("s", 1))
        yield gateway, server, channel


async def test_a_call_with_metadata_and_trailers(echo):
    _, _, channel = echo
    call = channel.unary_unary("/echo.Echo/Unary")(b"hello", metadata=(("say", "x"),), timeout=60)
    assert await call == b"HELLO"
    assert dict(await call.trailing_metadata())["echoed"] == "x"


async def test_many_calls_share_a_connection(echo):
    _, _, channel = echo
    unary = channel.unary_unary("/echo.Echo/Unary")
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(unary(f"m{number}".encode()) for number in range(400)))
    assert answers == [f"M{number}".encode() for number in range(400)]


async def test_large_messages(echo):
    _, _, channel = echo
    message = b"x" * (5 << 20)
    assert await channel.unary_unary("/echo.Echo/Unary")(message, timeout=60) == message.upper()


async def test_messages_go_both_ways_at_once(echo):
    _, _, channel = echo
    call = channel.stream_stream("/echo.Echo/Both")(timeout=60)
    for message in (b"one", b"two", b"three"):
        await call.write(message)
        assert await call.read() == message.upper()  # the stream is still open
    await call.done_writing()
    assert await call.read() is grpc.aio.EOF
    assert await call.code() is grpc.StatusCode.OK


async def test_the_servers_own_refusal_arrives_as_it_is(echo):
    _, _, channel = echo
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await channel.unary_unary("/echo.Echo/Fail")(b"", timeout=60)
    assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "not today: ü")


async def test_a_cancelled_call_is_cancelled_at_the_server(echo):
    _, server, channel = echo
    call = channel.unary_unary("/echo.Echo/Hang")(b"")
    async with asyncio.timeout(60):
        await server.hanging.wait()
        call.cancel()
        await server.cancelled.wait()


async def test_refusals_of_the_gateway_are_ones_of_grpc(echo):
    gateway, _, channel = echo
    unary = channel.unary_unary("/echo.Echo/Unary")

    async def refused() -> tuple[grpc.StatusCode, str | None]:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await unary(b"", timeout=60)
        return caught.value.code(), caught.value.details()

    await gateway.service("s", appProtocol=H2C)
    code, reason = await refused()
    assert code is grpc.StatusCode.UNAVAILABLE
    assert reason is not None
    assert "Service default/s has no endpoints" in reason
    await gateway.route("other.test", ("s", 1))
    assert (await refused())[0] is grpc.StatusCode.UNIMPLEMENTED


async def test_a_limit_of_time_and_a_server_that_dies(gateway):
    async with channel_to(gateway.port) as channel:
        hang = channel.unary_unary("/echo.Echo/Hang")
        async with echoing() as (server, port):
            await gateway.service("s", (port, True), appProtocol=H2C)
            await gateway.route("h.test", ("s", 1), timeouts={"request": "200ms"})
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await hang(b"", timeout=60)
            assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
            assert "0.2 s, the limit of HTTPRoute default/r" in (caught.value.details() or "")
            server.hanging.clear()
            await gateway.route("h.test", ("s", 1))
            call = hang(b"", timeout=60)
            await asyncio.wait_for(server.hanging.wait(), 60)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call
        assert caught.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)
        async with echoing() as (_, port):
            await gateway.service("s", (port, True), appProtocol=H2C)
            assert await channel.unary_unary("/echo.Echo/Unary")(b"again", timeout=60) == b"AGAIN"


async def test_calls_are_retried_and_split_like_other_requests(gateway):
    async with echoing() as (_, port), channel_to(gateway.port) as channel:
        await gateway.service("alive", (port, True), appProtocol=H2C)
        await gateway.service("s", (1, True), (port, True), appProtocol=H2C)  # nobody listens on the first
        await gateway.route("h.test", ("s", 1), ("alive", 1))
        for _ in range(20):
            assert await channel.unary_unary("/echo.Echo/Unary")(b"x", timeout=60) == b"X"
