"""Everything passes through the agent as it is: streams both ways, other protocols, odd messages, and ends."""

from __future__ import annotations

import asyncio
import re
from asyncio import StreamReader, StreamWriter
from contextlib import suppress

import aiohttp
import pytest
import websockets
from aiohttp import web
from tests.unit.pods.agent.relaying import listening, relaying
from tests.waiting import until
from tests.web_servers import on_any_path, serving

from isvc.pods.agent.batcher import Batch, Batcher

WITHIN = 60


async def _sends(writer: StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


async def _line(reader: StreamReader, end: bytes = b"\n") -> bytes:
    return await asyncio.wait_for(reader.readuntil(end), WITHIN)


async def _all(reader: StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), WITHIN)


async def test_bodies_stream_both_ways_at_once() -> None:
    """Each chunk is answered before the next is sent: nobody holds a message back."""

    async def echo(reader: StreamReader, writer: StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        assert head == b"POST /v2/stream HTTP/1.1\r\nhost: m\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n"
        await _sends(writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
        while (line := await reader.readuntil(b"\r\n")) != b"0\r\n":
            await _sends(writer, line + await reader.readexactly(int(line, 16) + 2))
        trailers = await reader.readuntil(b"\r\n\r\n")
        await _sends(writer, b"0\r\n" + trailers)
        writer.close()

    async with listening(echo) as component, relaying(component, logs=True) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        head = b"POST /v2/stream HTTP/1.1\r\nhost: m\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n"
        await _sends(writer, head)
        assert (
            await _line(reader, b"\r\n\r\n")
            == b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        )
        for word in (b"one", b"two", b"three"):
            await _sends(writer, b"%x\r\n%b\r\n" % (len(word), word))
            assert await _line(reader, word + b"\r\n") == b"%x\r\n%b\r\n" % (len(word), word)
        await _sends(writer, b"0\r\nX-Sum: 3\r\n\r\n")
        assert await _line(reader, b"\r\n\r\n") == b"0\r\nX-Sum: 3\r\n\r\n"
        writer.close()
        await until(lambda: len(agent.kept.events) == 2)
    assert [(event.kind, event.payload) for event in agent.kept.events] == [
        ("request", b"onetwothree"),
        ("response", b"onetwothree"),
    ]
    assert agent.ledger.held == 0


async def test_server_sent_events_come_one_by_one() -> None:
    read = asyncio.Event()

    async def events(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(3):
            await response.write(b"data: %d\n\n" % number)
            await read.wait()
            read.clear()
        return response

    async with serving(on_any_path(events)) as component, relaying(component, logs=True) as agent:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{agent.port}/x") as answer:
            for number in range(3):
                assert await asyncio.wait_for(answer.content.readuntil(b"\n\n"), WITHIN) == b"data: %d\n\n" % number
                read.set()
        await until(lambda: agent.kept.kinds == ["request", "response"])
    assert agent.kept.events[1].payload == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


async def test_websockets() -> None:
    async def shout(socket: websockets.ServerConnection) -> None:
        async for message in socket:
            await socket.send(message.upper())

    async with websockets.serve(shout, "127.0.0.1", 0, subprotocols=["v2"]) as server:  # type: ignore[list-item]
        component = next(iter(server.sockets)).getsockname()[1]
        async with relaying(component, logs=True) as agent:
            url = f"ws://127.0.0.1:{agent.port}/v2/chat"
            async with websockets.connect(url, subprotocols=["v2"]) as client:  # type: ignore[list-item]
                assert client.subprotocol == "v2"
                for text in ("hello", "a" * 300_000):
                    await client.send(text)
                    assert await asyncio.wait_for(client.recv(), WITHIN) == text.upper()
                await client.ping()


async def test_requests_sent_ahead_are_answered_in_order_and_a_closed_connection_is_opened_again() -> None:
    connections: list[list[bytes]] = []

    async def twice(reader: StreamReader, writer: StreamWriter) -> None:
        """Answers two requests, and then closes without a word, as servers do with connections that nobody uses."""
        connections.append([])
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            connections[-1].append(head.split(b" ")[1])
            await _sends(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + connections[-1][-1])
        writer.close()

    async with listening(twice) as component, relaying(component) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        await _sends(writer, b"".join(b"GET /m%d HTTP/1.1\r\nHost: m\r\n\r\n" % number for number in range(2)))
        for number in range(2):
            assert (await _line(reader, b"/m%d" % number)).startswith(b"HTTP/1.1 200 OK")
        await until(lambda: agent.has_lost_its_server())
        for number in (2, 3):
            await _sends(writer, b"GET /m%d HTTP/1.1\r\nHost: m\r\n\r\n" % number)
            assert (await _line(reader, b"/m%d" % number)).startswith(b"HTTP/1.1 200 OK")
        writer.close()
    assert connections == [[b"/m0", b"/m1"], [b"/m2", b"/m3"]]


@pytest.mark.parametrize(
    ("request_head", "answer", "complete"),
    [
        (b"HEAD /m HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", True),
        (b"GET /m HTTP/1.1\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"GET /m HTTP/1.1\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", True),
        (b"GET /m HTTP/1.1\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 204 None\r\n\r\n", True),
        (b"GET /m HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nuntil the end", False),
        (b"GET /m HTTP/1.0\r\n\r\n", b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
        (b"GET /m HTTP/1.1\r\nConnection: close\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", False),
    ],
)
async def test_messages_end_where_they_end(request_head: bytes, answer: bytes, complete: bool) -> None:
    seen: list[bytes] = []

    async def server(reader: StreamReader, writer: StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        await _sends(writer, answer)
        if not complete:
            writer.close()

    async with listening(server) as component, relaying(component) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        await _sends(writer, request_head)
        if complete:
            assert await asyncio.wait_for(reader.readexactly(len(answer)), WITHIN) == answer
            await _sends(writer, b"BROKEN\r\n\r\n")  # the agent reads on: it takes the message for complete
            assert (await _line(reader)).startswith(b"HTTP/1.1 400")
        else:
            assert await _all(reader) == answer
    assert seen == [request_head]


async def test_a_client_that_waits_for_the_go_ahead_gets_it_from_the_server() -> None:
    async def server(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await _sends(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await reader.readexactly(3)
        await _sends(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n" + body[::-1])

    async with listening(server) as component, relaying(component) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        await _sends(writer, b"POST / HTTP/1.1\r\nHost: m\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert await _line(reader, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await _sends(writer, b"abc")
        assert (await _line(reader, b"cba")).startswith(b"HTTP/1.1 200 OK")


async def test_an_answer_that_comes_before_the_request_has_ended_is_read() -> None:
    async def server(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await _sends(writer, b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large")
        writer.close()

    async with listening(server) as component, relaying(component, logs=True) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        await _sends(writer, b"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100_000)
        assert (await _all(reader)).endswith(b"\r\n\r\ntoo large")
        writer.close()
        await until(lambda: agent.ledger.held == 0)
    assert agent.kept.events == []


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"POST / HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: m\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nHost: m\r\nContent-Length: +1\r\n\r\na",
        b"GET / HTTP/1.1\r\nHost: m\r\nX : y\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(request_bytes: bytes) -> None:
    async def server(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with listening(server) as component, relaying(component, logs=True) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        await _sends(writer, request_bytes)
        assert (await _all(reader)).startswith(b"HTTP/1.1 400 Bad Request\r\n")
        writer.close()
    assert agent.kept.events == []


async def test_a_client_that_leaves_is_known_to_the_model_server() -> None:
    left: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def slow(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.read()  # until the connection ends
        left.set_result(None)
        writer.close()

    async with listening(slow) as component, relaying(component, logs=True) as agent:
        _, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        await _sends(writer, b"GET /slow HTTP/1.1\r\nHost: m\r\n\r\n")
        await until(lambda: agent.kept.kinds == ["request"])
        writer.transport.abort()
        await asyncio.wait_for(left, WITHIN)


async def test_an_answer_that_is_cut_is_not_taken_for_a_whole_one() -> None:
    async def server(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await _sends(writer, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        writer.close()

    async with listening(server) as component, relaying(component, logs=True) as agent:
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                async with session.get(f"http://127.0.0.1:{agent.port}/") as answer:
                    await answer.read()
        await until(lambda: agent.ledger.held == 0)
    assert agent.kept.kinds == ["request"]


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200"])
async def test_a_server_that_gives_no_answer_is_a_bad_gateway(answer: bytes) -> None:
    async def server(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await _sends(writer, answer)
        writer.close()

    async with listening(server) as component, relaying(component) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        await _sends(writer, b"GET / HTTP/1.1\r\nHost: m\r\n\r\n")
        said = await _all(reader)
        assert re.match(rb"HTTP/1.1 502 Bad Gateway\r\n.*the model server does not answer", said, re.DOTALL)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 101 Upgraded\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"]
)
async def test_a_slow_reader_holds_up_the_server_and_nothing_is_piled_up(head: bytes) -> None:
    async def endless(reader: StreamReader, writer: StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                await _sends(writer, b"x" * 65536)

    async with listening(endless) as component, relaying(component) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port, limit=1024)
        await _sends(writer, b"GET / HTTP/1.1\r\nHost: m\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
        for _ in range(3):
            await until(agent.holds_its_server_up)
            assert agent.piled_up() < 1 << 20
            for _ in range(100):
                assert await asyncio.wait_for(reader.read(1 << 16), WITHIN)
        writer.transport.abort()


async def test_payloads_that_find_no_room_pass_and_are_counted() -> None:
    async def echo(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    async with serving(on_any_path(echo)) as component, relaying(component, logs=True, room=1000) as agent:
        async with aiohttp.ClientSession() as session:
            for size in (10_000, 900):
                async with session.post(f"http://127.0.0.1:{agent.port}/", data=b"x" * size) as answer:
                    assert len(await answer.read()) == size
        await until(lambda: agent.kept.kinds == ["request", "response"])
    assert (agent.ledger.dropped, agent.ledger.held) == (2, 0)


@pytest.mark.parametrize("batches", [0, 2])
async def test_traces_reach_the_model_server_and_the_log(batches: int) -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    seen = []

    async def predict(request: web.Request) -> web.Response:
        seen.append(request.headers.get("traceparent"))
        return web.json_response({"predictions": [1]})

    async with (
        serving(on_any_path(predict)) as component,
        relaying(component, logs=True, batches=batches) as agent,
        aiohttp.ClientSession(headers={"traceparent": trace}) as session,
    ):
        url = f"http://127.0.0.1:{agent.port}/v1/models/m:predict"
        async with session.post(url, json={"instances": [1]}) as answer:
            assert answer.status == 200
        await until(lambda: agent.kept.kinds == ["request", "response"])
    assert seen == [trace]
    assert [event.trace for event in agent.kept.events] == [trace, trace]


async def test_a_prediction_too_large_to_be_batched_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isvc.pods.agent.relay.MAX_BODY", 1000)
    async with (
        relaying(1, batches=2) as agent,
        aiohttp.ClientSession() as session,
        session.post(f"http://127.0.0.1:{agent.port}/v1/models/m:predict", data=b"x" * 2000) as answer,
    ):
        assert answer.status == 413


@pytest.mark.parametrize("size", [0, 10, 3 << 20])
async def test_a_client_that_has_said_everything_gets_all_answers(size: int) -> None:
    """It ends its side behind its last request, of which the agent may hold a part by then."""

    async def answer(reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(size)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n<a>")
        writer.close()

    async with listening(answer) as server, relaying(server) as agent:
        reader, writer = await asyncio.open_connection("127.0.0.1", agent.port)
        request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
        writer.write(request * 5)
        writer.write_eof()
        assert (await _all(reader)).count(b"<a>") == 5
        writer.close()


async def _predict(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = b'{"instances":[1]}'
    writer.write(b"POST /v1/models/m:predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    writer.close()
    return head


async def test_a_status_that_nobody_knows_passes_in_a_batch() -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=599, reason="Odd")

    async with serving(on_any_path(refuse)) as server, relaying(server, batches=1) as agent:
        assert (await _predict(agent.port)).startswith(b"HTTP/1.1 599 \r\n")


async def test_a_batch_that_was_sent_is_kept_by_no_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response({"predictions": [1]})

    made: list[Batch] = []

    def make(trace: str) -> Batch:
        made.append(Batch(trace))
        return made[-1]

    monkeypatch.setattr("isvc.pods.agent.batcher.Batch", make)
    monkeypatch.setattr("tests.unit.pods.agent.relaying.Batcher", lambda server, size, _: Batcher(server, size, 3600))
    async with serving(on_any_path(answer)) as server, relaying(server, batches=1) as agent:
        assert b" 200 " in await _predict(agent.port)
        assert [batch.timer is not None and batch.timer.cancelled() for batch in made] == [True]
