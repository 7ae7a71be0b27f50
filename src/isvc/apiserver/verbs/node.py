"""What only the node that runs a pod can answer: the API server asks it, as Kubernetes does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import orjson

from isvc.apiserver.http.response import Response, Stream, Writer
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest, InternalError, NotFound
from isvc.kube.objects import Object, dig

if TYPE_CHECKING:
    import aiohttp

TEXT = "text/plain"


def endpoint(api: Api, name: str) -> tuple[str, int]:
    """The address and port at which a node answers."""
    entry = api.store.get("nodes", "", name)
    node = entry.parse() if entry else {}
    port = dig(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port")
    addresses = {each["type"]: each["address"] for each in dig(node, "status", "addresses") or ()}
    address = addresses.get("InternalIP") or addresses.get("Hostname")
    if not port or not address:
        raise NotFound(f'nodes "{name}" has no endpoint')
    return str(address), int(port)


async def ask(api: Api, node: str, method: str, path: str) -> Response:
    """The node's answer, passed on as it comes; what it refuses is raised."""
    session, answer = await _asked(api, node, method, path)

    async def pass_on(writer: Writer) -> None:
        async with session:
            await copy(answer.content.readany, writer)

    return Stream(pass_on, TEXT)


async def copy(read: Callable[[], Awaitable[bytes]], writer: Writer) -> None:
    """What `read` returns, until it returns nothing or the client has left."""
    while True:
        reading = asyncio.ensure_future(read())
        await asyncio.wait((reading, writer.gone), return_when=asyncio.FIRST_COMPLETED)
        if writer.gone.done():
            reading.cancel()  # a quiet stream may have no more to say for hours
            return
        if not (data := reading.result()):
            return
        writer.write(data)
        await writer.drain()


async def ask_json(api: Api, node: str, path: str) -> Object:
    """What the node answers, as a whole."""
    session, answer = await _asked(api, node, "GET", path)
    async with session:
        found: Object = orjson.loads(await answer.read())
    return found


async def _asked(api: Api, node: str, method: str, path: str) -> tuple[aiohttp.ClientSession, aiohttp.ClientResponse]:
    import aiohttp  # 200 ms: only servers with nodes pay

    address, port = endpoint(api, node)
    url = f"https://{address}:{port}{path}"
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=api.identity.client_context()),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        headers={"Authorization": f"Bearer {api.identity.kubelet_token}"},
    )
    try:
        answer = await session.request(method, url)
    except aiohttp.ClientError as error:
        await session.close()
        raise InternalError(f"Internal error occurred: the node did not answer: {error}") from None
    if answer.status != 200:
        text = (await answer.text()).strip()
        await session.close()
        raise BadRequest(text) if answer.status < 500 else InternalError(text)
    return session, answer
