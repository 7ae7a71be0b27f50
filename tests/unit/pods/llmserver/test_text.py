from __future__ import annotations

import asyncio

from aiohttp import web
from tests.web_servers import on_any_path, serving

from isvc.pods.llmserver.openai.text import EventStream


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()

    async def endless(request: web.Request) -> web.StreamResponse:
        stream = EventStream(request, patience=0.2)
        await stream.open()
        try:
            while True:
                await stream.send({"text": "x" * 100_000})
        except ConnectionError as error:
            ended.set_result(error)
            raise

    async with serving(on_any_path(endless)) as port:
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert "does not read" in str(await asyncio.wait_for(ended, 60))
        writer.close()
