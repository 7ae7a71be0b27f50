"""One object that is nested too deeply does not keep a manager from the others."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from aiohttp import web

from isvc.kube.objects import Key
from isvc.kube.resource import CONFIG_MAPS
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.informer import Informer
from isvc.toolkit.reads import Read


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
        await asyncio.wait_for(informer.settled(), 60)
        assert informer.store.all_keys() == [Key("ns", "a10"), Key("ns", "a20")]
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
