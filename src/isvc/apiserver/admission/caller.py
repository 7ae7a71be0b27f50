"""HTTPS to webhooks, as a CustomResourceDefinition or a webhook configuration addresses them: by URL or by Service.

There is no cluster network here. A Service leads to the addresses of its Endpoints; one without any is taken to listen
on this machine, at the Service's port.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import orjson

from isvc.apiserver.reader import Reader
from isvc.kube.objects import Object
from isvc.wire.failures import message_of
from isvc.wire.http1.client_connection import AnswerTooLarge
from isvc.wire.http1.message import encode_request, header_lines
from isvc.wire.http1.pool import Pools

_LARGEST_ANSWER = 16 * 1024 * 1024
_MOST_AT_ONCE = 256  # to one webhook
_IDLE_SECONDS = 30.0


class CallFailed(Exception):
    """The webhook could not be asked, or did not answer properly."""


class _Address(NamedTuple):
    url: str  # as it is shown
    name: str  # the host that the certificate must name
    authority: str  # the host of the request, with a port if the URL has one
    host: str  # to connect to
    port: int
    path: str


class Caller:
    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader
        self._pools = Pools(limit=_MOST_AT_ONCE, idle_seconds=_IDLE_SECONDS, max_body=_LARGEST_ANSWER)
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, client_config: Object, body: Object, *, timeout: float) -> Object:  # noqa: ASYNC109
        """Returns the JSON object that the webhook answers; raises CallFailed in Go's words where they are known."""
        address = self._address(client_config)
        shown = f'Post "{address.url}?timeout={timeout:g}s"'
        tls = self._context(client_config.get("caBundle") or "")
        try:
            request = _encode(address, timeout, orjson.dumps(body))
            async with asyncio.timeout(timeout):
                pool = self._pools.to(address.host, address.port, address.name)
                reply = await pool.exchange("POST", request, tls)
        except AnswerTooLarge:
            raise CallFailed(f"the response is larger than {_LARGEST_ANSWER} bytes") from None
        except (OSError, ValueError) as error:
            raise CallFailed(f"{shown}: {_reason(error, address)}") from None
        _check_status(reply.status, reply.body)
        return _json(reply.body)

    async def close(self) -> None:
        await self._pools.close()

    def _address(self, client_config: Object) -> _Address:
        if client_config.get("url"):
            url = str(client_config["url"])
            parts = urlsplit(url)
            host = parts.hostname or ""
            return _Address(url, host, parts.netloc, host, parts.port or 443, parts.path)
        service = client_config["service"]
        port, path = service.get("port") or 443, service.get("path") or "/"
        name = f"{service['name']}.{service['namespace']}.svc"
        host, behind = self._endpoint(service["namespace"], service["name"], port) or ("127.0.0.1", port)
        return _Address(f"https://{name}:{port}{path}", name, name, host, behind, path)

    def _endpoint(self, namespace: str, name: str, port: int) -> tuple[str, int] | None:
        """Returns the first ready address behind a port of a Service."""
        service = self._reader.get("services", name, namespace) if self._reader else None
        if service is None or self._reader is None:
            return None
        wanted = [p for p in service.get("spec", {}).get("ports", []) if p.get("port") == port]
        endpoints = self._reader.get("endpoints", name, namespace) or {}
        for subset in endpoints.get("subsets") or ():
            for each in subset.get("ports") or ():
                if subset.get("addresses") and (not wanted or each.get("name") == wanted[0].get("name")):
                    return subset["addresses"][0]["ip"], each["port"]
        return None

    def _context(self, bundle: str) -> ssl.SSLContext:
        if bundle not in self._contexts:
            try:
                data = base64.b64decode(bundle).decode() if bundle else None
                context = ssl.create_default_context(cadata=data)
            except (ValueError, ssl.SSLError) as error:
                raise CallFailed(f"unable to load root certificates: {error}") from None
            # As Go verifies: a bundle may hold the webhook's own certificate, and RFC 5280 is not taken to the letter.
            context.verify_flags = ssl.VERIFY_X509_TRUSTED_FIRST | ssl.VERIFY_X509_PARTIAL_CHAIN
            self._contexts[bundle] = context
        return self._contexts[bundle]


def _encode(address: _Address, timeout: float, body: bytes) -> bytes:
    media = "application/json"
    headers = [("Host", address.authority), ("Content-Type", media), ("Accept", media)]
    path = quote(address.path or "/", "/%:@!$&'()*+,;=~")
    return encode_request("POST", f"{path}?timeout={timeout:g}s", header_lines(headers), body)


def _check_status(status: int, content: bytes) -> None:
    if 200 <= status < 300:
        return
    if status == 404:
        raise CallFailed("the server could not find the requested resource")
    text = content.decode(errors="replace").strip().replace('"', '\\"')
    if status >= 500:
        raise CallFailed(f'an error on the server ("{text}") has prevented the request from succeeding')
    raise CallFailed(f"the server rejected our request for an unknown reason ({status})")


def _json(content: bytes) -> Object:
    try:
        answer: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise CallFailed(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(answer, dict):
        raise CallFailed("the answer is not a JSON object")
    return answer


def _reason(error: OSError | ValueError, address: _Address) -> str:
    match error:
        case TimeoutError():
            return "context deadline exceeded"
        case ssl.SSLCertVerificationError():
            return f"tls: failed to verify certificate: x509: {error}"
        case socket.gaierror():
            return f"dial tcp: lookup {address.host}: no such host"
        case ssl.SSLError():
            return f"tls: {error.reason or error}"
        case OSError(errno=int(number)):
            return f"dial tcp {address.host}:{address.port}: connect: {os.strerror(number).lower()}"
    return message_of(error)
