"""Lines out of chunks of any size; and one object that is nested too deeply does not keep a manager from the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from isvc.kube.objects import Key
from isvc.kube.resource import CONFIG_MAPS
from isvc.toolkit.cache.informer import Informer
from isvc.toolkit.client import Client
from isvc.toolkit.client.answers import split_lines
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.reads import Read


async def of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((b"a\nb", b"c\n", b"\nd"), [b"a", b"bc", b"d"]),
        ((b"12", b"34", b"5\n6"), [b"1234", b"5", b"6"]),
        ((b"1\n23", b"45", b"\n"), [b"1", b"2345"]),
    ],
)
async def test_a_line_without_an_end_comes_in_pieces(chunks, lines):
    assert [line async for line in split_lines(of(*chunks), longest=4)] == lines


async def test_a_line_may_be_as_long_as_it_likes():
    assert [line async for line in split_lines(of(*[b"x" * 100] * 100))] == [b"x" * 10_000]


@given(st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line)), st.data())
def test_lines_come_out_whole_however_they_are_cut(lines, data):
    whole = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    async def chunks():
        for piece in pieces:
            yield piece

    async def collect() -> list[bytes]:
        return [line async for line in split_lines(chunks())]

    assert asyncio.run(collect()) == lines


def _page(*depths: int) -> bytes:
    items = b",".join(
        b'{"metadata":{"name":"a%d","namespace":"ns","resourceVersion":"%d","annotations":{"odd":"]}\\\\\\"["}},"x":%s}'
        % (depth, number, b'{"y":[' * (depth // 2) + b"1" + b"]}" * (depth // 2))
        for number, depth in enumerate(depths, 1)
    )
    return b'{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":[%s]}' % items


@pytest.mark.parametrize(
    ("depths", "read"),
    [
        ((10, 9000, 20), ["a10", "a20"]),
        ((9000, 10), ["a10"]),
        ((9000,), []),
        ((10, 300, 20), ["a10", "a300", "a20"]),
    ],
)
async def test_a_list_is_read_without_them(script, depths, read):
    script.will(lambda _: web.Response(body=_page(*depths), content_type="application/json"))
    async with Client.connect(script.config()) as client:
        found = await client.list(CONFIG_MAPS, "ns")
    assert [obj["metadata"]["name"] for obj in found.items] == read
    assert found.items == [] or found.items[0]["metadata"]["annotations"] == {"odd": ']}\\"['}


async def test_a_watch_goes_on_after_them(script):
    deep, plain = (b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"%d"},"x":%s}}\n' % change
                   for change in ((1, b"[" * 9000 + b"]" * 9000), (2, b"1")))  # fmt: skip
    script.will(lambda _: web.Response(body=deep + plain, content_type="application/json"))
    async with Client.connect(script.config()) as client:
        seen = [event.version async for event in client.watch(CONFIG_MAPS, "ns", resource_version="0")]
    assert seen == ["2"]


async def test_an_informer_holds_the_others(script):
    async def watched(request: web.Request) -> web.Response:
        if "watch" in request.query:
            await asyncio.Event().wait()
        return web.Response(body=_page(10, 300, 9000, 20), content_type="application/json")

    script.will(watched)
    async with Client.connect(script.config()) as client:
        informer = Informer(client, Read(CONFIG_MAPS), SystemClock())
        running = asyncio.create_task(informer.run())
        await asyncio.wait_for(informer.wait_for_sync(), 60)
        assert informer.store.all_keys() == [Key("ns", "a10"), Key("ns", "a20")]
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
