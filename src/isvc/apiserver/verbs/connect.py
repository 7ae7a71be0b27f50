"""exec, attach and port-forward: the client's connection, passed on to the node that runs the pod.

The node speaks WebSocket or SPDY with the client; the API server copies bytes. Whoever runs pods registers a Node with
the address and port of a server that has a kubelet's paths.
"""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl, quote, urlencode

from isvc.apiserver.request import Call
from isvc.apiserver.verbs import read
from isvc.apiserver.verbs.logs import choose_container
from isvc.apiserver.verbs.node import endpoint
from isvc.apiserver.verbs.pipeline import Api
from isvc.http1 import message
from isvc.http1.tunnel import Tunnel
from isvc.kube.errors import BadRequest, InternalError
from isvc.kube.objects import Object, dig

_CONNECT_SECONDS = 10.0
_MAX_REFUSAL = 1 << 16
_PIECE = 1 << 16
_PASSED_ON = ("upgrade", "x-stream-protocol-version", "sec-websocket-key", "sec-websocket-protocol",
              "sec-websocket-version")  # fmt: skip
_ANSWERED = ("Upgrade", "X-Stream-Protocol-Version", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol")
_KUBELET_NAMES = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}


async def connect(api: Api, call: Call) -> message.Response:
    pod = read.find(api, call).parse()
    path = _path(call, pod)
    node = dig(pod, "spec", "nodeName")
    if not node:
        raise BadRequest(f"pod {call.name} does not have a host assigned")
    if "upgrade" not in call.request.headers:
        raise BadRequest("Upgrade request required")
    address, port = endpoint(api, node)
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(address, port, ssl=api.identity.client_context())
    except (OSError, TimeoutError) as error:
        raise InternalError(f"Internal error occurred: node {node} did not answer: {error}") from None
    try:
        headers = await _ask(reader, writer, call, path, f"{address}:{port}", api.identity.kubelet_token)
    except BaseException:
        writer.close()
        raise
    return message.Upgrade(headers, lambda tunnel: _relay(tunnel, reader, writer))


def _path(call: Call, pod: Object) -> str:
    """The kubelet's path and parameters for the client's."""
    given = parse_qsl(call.request.query_string, keep_blank_values=True)
    whose = f"{quote(call.namespace)}/{quote(call.name)}"
    if call.subresource == "portforward":
        ports = [port for name, value in given if name == "ports" for port in value.split(",") if port]
        return f"/portForward/{whose}?{urlencode([('port', port) for port in ports])}"
    container = choose_container(pod, call.request.query.get("container", ""))
    options = [(_KUBELET_NAMES[name], "1") for name in _KUBELET_NAMES if call.request.flag(name)]
    if call.subresource == "attach":
        return f"/attach/{whose}/{quote(container)}?{urlencode(options)}"
    words = [(name, value) for name, value in given if name == "command"]
    if not words:
        raise BadRequest("you must specify at least one command for the container")
    return f"/exec/{whose}/{quote(container)}?{urlencode(options + words)}"


async def _ask(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, call: Call, path: str, host: str, token: str
) -> dict[str, str]:
    """The headers with which the node switches protocols; what it refuses is raised."""
    request = call.request
    lines = [f"{request.method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: Bearer {token}"]
    lines.append("Connection: Upgrade")
    lines += [f"{each}: {request.headers[each]}" for each in _PASSED_ON if each in request.headers]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError) as error:
        raise InternalError(f"Internal error occurred: the node did not answer: {error}") from None
    status, *rest = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    code = status.split()[1]
    if code == "101":
        return {name: headers[name.lower()] for name in _ANSWERED if name.lower() in headers}
    text = (await reader.read(min(int(headers.get("content-length", "0")), _MAX_REFUSAL))).decode("utf-8", "replace")
    raise BadRequest(text) if code < "500" else InternalError(text)


async def _relay(tunnel: Tunnel, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until one of the two leaves."""

    async def up() -> None:
        while data := await tunnel.read():
            writer.write(data)
            await writer.drain()

    async def down() -> None:
        while data := await reader.read(_PIECE):
            tunnel.write(data)
            await tunnel.drain()

    copies = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        await asyncio.wait((*copies, tunnel.gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in copies:
            task.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        writer.transport.abort()  # what is on its way to the node has nobody left who waits for it
