"""/proxy of pods, services and nodes: a request passed on to the server that listens there, and its answer back.

`kubectl get --raw`, `kubectl proxy` and Prometheus reach pods this way. The node that runs the pod connects to its
port; HTTP is spoken through that connection.
"""

from __future__ import annotations

import ssl
from urllib.parse import quote

from multidict import CIMultiDict

from isvc.apiserver.http.response import Response, Stream, Writer
from isvc.apiserver.request import Call
from isvc.apiserver.verbs import backends
from isvc.apiserver.verbs.backends import Backend
from isvc.apiserver.verbs.node import Streams, copy, switch
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest, ServiceUnavailable
from isvc.wire.http1 import message
from isvc.wire.http1.client_connection import Broken, ClientConnection, Reply
from isvc.wire.http1.end_to_end import end_to_end

_WITHOUT_BODY = (204, 304)
_SET_HERE = ("content-type", "content-length", "date", "cache-control", "location")
_PATH_CHARACTERS = "/:@!$&'()*+,;=~"


async def proxy(api: Api, call: Call) -> message.Response:
    request, target = call.request, call.request.target
    assert target is not None
    backend = backends.find(api, call)
    upgrades = "upgrade" in request.headers
    if not target.rest and request.method in ("GET", "HEAD") and not upgrades:
        query = f"?{request.query_string}" if request.query_string else ""
        return Response(b"", 301, "text/plain", {"Location": f"{quote(request.path, _PATH_CHARACTERS)}/{query}"})
    streams = await _reach(api, backend)
    try:
        if upgrades:
            answered = await switch(streams, _request(api, call, backend))
            headers = {name.title(): value for name, value in answered.items() if name != "connection"}
            return message.Upgrade(headers, lambda tunnel: tunnel.relay(*streams))
        return await _exchange(call, streams, _request(api, call, backend))
    except BaseException:
        streams.writer.transport.abort()
        raise


async def _reach(api: Api, backend: Backend) -> Streams:
    if not backend.tunnel:
        return await api.nodes.dial(backend.node)
    streams, _ = await api.nodes.switch_protocol(backend.node, "POST", backend.tunnel, [("Upgrade", "tcp")])
    if backend.tls:
        anybody = ssl.create_default_context()  # pods show certificates of their own making, as Kubernetes takes them
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        try:
            await streams.writer.start_tls(anybody)
        except OSError as error:
            streams.writer.transport.abort()
            raise ServiceUnavailable(f"the pod does not speak TLS: {error}") from None
    return streams


def _request(api: Api, call: Call, backend: Backend) -> bytes:
    request, target = call.request, call.request.target
    assert target is not None
    headers = end_to_end(CIMultiDict(request.headers))
    for name in [name for name in headers if name.startswith(("authorization", "impersonate-", "content-length"))]:
        del headers[name]
    headers["X-Forwarded-Host"] = headers.get("host", "")
    headers["X-Forwarded-Proto"] = "https"
    headers["X-Forwarded-Uri"] = quote(request.path, _PATH_CHARACTERS)
    if not backend.tunnel:
        headers["Authorization"] = api.nodes.authorization
    if "upgrade" in request.headers:
        headers["Connection"], headers["Upgrade"] = "Upgrade", request.headers["upgrade"]
    # Else the connection stays open: TLS within TLS loses what a slow reader has not taken when its peer closes.
    path = quote(target.rest or "/", _PATH_CHARACTERS) + (f"?{request.query_string}" if request.query_string else "")
    body = request.body if request.body or request.method in ("POST", "PUT", "PATCH") else None
    try:
        return message.encode_request(request.method, path, message.header_lines(headers.items()), body)
    except ValueError as error:
        raise BadRequest(str(error)) from None


async def _exchange(call: Call, streams: Streams, request: bytes) -> Response:
    transport = streams.writer.transport
    connection = ClientConnection(lambda _: None)
    connection.connection_made(transport)
    transport.set_protocol(connection)
    is_head = call.request.method == "HEAD"
    try:
        reply = await (connection.exchange(request, without_body=True) if is_head else connection.head(request))
    except (Broken, OSError) as error:
        raise ServiceUnavailable(f"error trying to reach service: {error}") from None

    async def pass_on(writer: Writer) -> None:
        pieces = connection.pieces()
        try:
            await copy(lambda: anext(pieces, b""), writer)
        finally:
            streams.writer.transport.abort()

    media, headers = reply.headers.get("content-type", "application/octet-stream"), _headers(call, reply)
    if is_head or reply.status in _WITHOUT_BODY:
        transport.abort()
        return Response(b"", reply.status, media, headers)
    answer = Stream(pass_on, media)
    answer.status, answer.headers = reply.status, headers
    return answer


def _headers(call: Call, reply: Reply) -> dict[str, str]:
    """Returns the headers of the answer; a path to go on at is one below /proxy, too."""
    target = call.request.target
    assert target is not None
    headers = {name: value for name, value in end_to_end(CIMultiDict(reply.headers)).items() if name not in _SET_HERE}
    location = reply.headers.get("location", "")
    if location.startswith("/") and not location.startswith("//"):
        location = quote(call.request.path.removesuffix(target.rest), _PATH_CHARACTERS) + location
    if location:
        headers["Location"] = location
    return headers
