"""The HTTP client against servers that do anything but what they should."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import aclosing, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.wire.http1.peer import GET, OK, Conversation, answers_forever, peer, says
from tests.waiting import until

from isvc.wire.http1.client_connection import AnswerTooLarge, Broken, ClientConnection, Stale
from isvc.wire.http1.message import encode_request, header_lines
from isvc.wire.http1.pool import Pool

POST = b"POST / HTTP/1.1\r\nHost: peer\r\nContent-Length: 0\r\n\r\n"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


async def get(pool: Pool) -> bytes:
    return (await pool.exchange("GET", GET, None)).body


async def streamed(pool: Pool, silence: float | None = None) -> list[bytes]:
    async with pool.stream(GET, None, 5.0) as response, aclosing(response.pieces(silence)) as pieces:
        return [piece async for piece in pieces]


async def test_one_connection_serves_one_request_after_the_other():
    async with peer(answers_forever) as (pool, connections):
        assert [await get(pool) for _ in range(3)] == [b"ok"] * 3
    assert len(connections) == 1


def client_connections() -> set[ClientConnection]:
    return {each for each in gc.get_objects() if isinstance(each, ClientConnection)}


async def test_a_connection_that_ended_leaves_nothing_to_the_garbage_collector(without_collector):
    before = client_connections()  # of tests before this one
    async with peer(answers_forever) as (pool, _):
        assert await get(pool) == b"ok"
        made = weakref.WeakSet(client_connections() - before)
        assert made
    await until(lambda: not made, "the end of the connection")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",  # ends with the connection
        OK + OK,  # more than was asked for
        OK + b"garbage",
    ],
)
async def test_a_connection_whose_state_is_not_sure_is_not_used_again(answer):
    async with peer(says(answer)) as (pool, connections):
        assert [await get(pool) for _ in range(2)] == [b"ok"] * 2
    assert len(connections) == 2


async def test_what_a_server_says_unasked_is_no_answer_to_the_next_request():
    said = asyncio.Event()

    async def intruder(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(OK)
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        said.set()
        await conversation.reader.read()

    async with peer(intruder, answers_forever) as (pool, _):
        assert await get(pool) == b"ok"
        await said.wait()
        assert await get(pool) == b"ok"


def closes_when_asked_again(*, reset: bool):
    async def behaviour(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(OK)
        await conversation.request()
        if reset:
            conversation.reset()

    return behaviour


@pytest.mark.parametrize("reset", [False, True])
async def test_a_get_on_a_connection_that_was_just_closed_is_sent_again(reset):
    async with peer(closes_when_asked_again(reset=reset), answers_forever) as (pool, connections):
        assert [await get(pool) for _ in range(2)] == [b"ok"] * 2
    assert len(connections) == 2


async def test_a_post_is_never_sent_again():
    async with peer(closes_when_asked_again(reset=True), answers_forever) as (pool, connections):
        await get(pool)
        with pytest.raises(Stale):
            await pool.exchange("POST", POST, None)
    assert len(connections) == 1


async def test_a_server_that_hangs_up_on_new_connections_is_not_asked_for_ever():
    async with peer(says(b"")) as (pool, connections):
        with pytest.raises(Broken):
            await get(pool)
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "cut"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", "cut"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "cut"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "not valid HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "changed the protocol"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 70_000, "headers of the answer are too large"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, "headers of the answer are too large"),
    ],
)
async def test_half_an_answer_and_nonsense_are_errors(answer, complaint):
    async with peer(says(answer)) as (pool, _):
        for ask in (get, streamed):
            with pytest.raises(Broken, match=complaint):
                await ask(pool)


async def test_an_answer_without_end_is_cut_off():
    async def endless(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await conversation.send(b"x" * 65536)

    async with peer(endless, max_body=1 << 20) as (pool, _):
        with pytest.raises(AnswerTooLarge, match="larger than 1 MiB"):
            await get(pool)


async def test_interim_answers_are_passed_over():
    async with peer(says(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + OK)) as (
        pool,
        _,
    ):
        reply = await pool.exchange("GET", GET, None)
    assert (reply.status, reply.body) == (200, b"ok")
    assert "link" not in reply.headers


async def test_an_answer_to_head_has_no_body():
    async with peer(says(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")) as (pool, _):
        assert (await pool.exchange("HEAD", GET, None)).headers["content-length"] == "5"


async def test_a_request_that_is_given_up_takes_its_connection_with_it():
    """What comes late is never taken for the answer to another request."""
    asked, released = asyncio.Event(), asyncio.Event()

    async def slow(conversation: Conversation) -> None:
        await conversation.request()
        asked.set()
        await released.wait()
        await conversation.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate")

    async with peer(slow, answers_forever) as (pool, connections):
        waiting = asyncio.create_task(get(pool))
        await asked.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        released.set()
        assert await get(pool) == b"ok"
    assert len(connections) == 2


async def test_a_stream_comes_as_it_is_sent_and_its_connection_is_kept():
    body = b"3\r\none\r\n3;extension\r\ntwo\r\n0\r\nTrailer: x\r\n\r\n"
    async with peer(says(CHUNKED + body, OK)) as (pool, connections):
        assert b"".join(await streamed(pool)) == b"onetwo"
        assert await get(pool) == b"ok"
    assert len(connections) == 1


async def test_a_stream_delivers_what_came_before_it_broke():
    got: list[bytes] = []

    async def read(pool: Pool) -> None:
        async with pool.stream(GET, None, 5.0) as response:
            async for piece in response.pieces():
                got.append(piece)  # noqa: PERF401 - what came before the error counts

    async with peer(says(CHUNKED + b"3\r\none\r\n3\r\ntw")) as (pool, _):
        with pytest.raises(Broken, match="cut"):
            await read(pool)
    assert b"".join(got).startswith(b"one")


async def test_silence_on_a_stream_is_noticed():
    async def mute(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await conversation.reader.read()

    async with peer(mute) as (pool, _):
        with pytest.raises(TimeoutError):
            await streamed(pool, silence=0.01)


async def test_a_reader_who_is_behind_holds_the_server_back():
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    more_than_buffers_hold = 1 << 30
    sent = 0
    reading = asyncio.Event()

    async def fast(conversation: Conversation) -> None:
        nonlocal sent
        await conversation.request()
        await conversation.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while not reading.is_set() and sent < more_than_buffers_hold:
            await conversation.send(piece)
            sent += 65536
        await conversation.send(b"0\r\n\r\n")

    async with peer(fast) as (pool, _), pool.stream(GET, None, 5.0) as response:
        before = -1
        while sent != before:  # until the server gets no further
            before = sent
            await asyncio.sleep(0.05)
        assert sent < more_than_buffers_hold
        reading.set()
        assert sum([len(piece) async for piece in response.pieces()]) == sent


async def test_no_more_exchanges_than_allowed_at_a_time():
    async with peer(answers_forever) as (pool, connections):
        await asyncio.gather(*(get(pool) for _ in range(50)))
    assert len(connections) <= 4


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=6))
def test_any_bytes_are_an_answer_or_an_error(pieces):
    async def babble(conversation: Conversation) -> None:
        await conversation.request()
        await conversation.send(b"HTTP/1.1 ")
        for piece in pieces:
            await conversation.send(piece)

    async def ask() -> None:
        async with peer(babble) as (pool, _):
            with suppress(Broken):
                await asyncio.wait_for(get(pool), 5)

    asyncio.run(ask())


@pytest.mark.parametrize("value", ["a\r\nX-Admin: yes", "a\nb", "a\0b"])
def test_a_value_cannot_smuggle_in_a_header(value):
    with pytest.raises(ValueError, match="Authorization"):
        header_lines([("Authorization", value)])
    with pytest.raises(ValueError, match="target"):
        encode_request("GET", f"/{value}", "", None)
