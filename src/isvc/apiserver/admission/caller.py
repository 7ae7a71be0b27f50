"""HTTPS to webhooks, as a CustomResourceDefinition or a webhook configuration addresses them: by URL or by Service.

There is no cluster network here. A Service leads to the addresses of its Endpoints; one without any is taken to listen
on this machine, at the Service's port.
"""

from __future__ import annotations

import base64
import os
import ssl
from typing import TYPE_CHECKING, Any

import orjson

from isvc.apiserver.admission.reader import Reader
from isvc.kube.objects import Object

if TYPE_CHECKING:
    import aiohttp

_LARGEST_ANSWER = 16 * 1024 * 1024


class CallFailed(Exception):
    """The webhook could not be asked, or did not answer properly."""


class Caller:
    def __init__(self, reader: Reader | None = None) -> None:
        self._reader = reader
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, client_config: Object, body: Object, *, timeout: float) -> Object:  # noqa: ASYNC109
        """The JSON object that the webhook answers; raises CallFailed in Go's words where they are known."""
        import aiohttp  # 200 ms: only servers with webhooks pay

        url, connect_to, host = self._address(client_config)
        shown = f'Post "{url}?timeout={timeout:g}s"'
        if self._session is None:
            self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        try:
            async with self._session.post(
                connect_to,
                params={"timeout": f"{timeout:g}s"},
                data=orjson.dumps(body),
                headers={"Content-Type": "application/json", "Accept": "application/json", "Host": host},
                ssl=self._context(client_config.get("caBundle") or ""),
                server_hostname=host.rsplit(":", 1)[0],
                timeout=aiohttp.ClientTimeout(total=timeout),
            ) as response:
                content = await _whole(response.content)
                _check_status(response.status, content)
        except TimeoutError:
            raise CallFailed(f"{shown}: context deadline exceeded") from None
        except aiohttp.ClientConnectorCertificateError as error:
            words = f"tls: failed to verify certificate: x509: {error.certificate_error}"
            raise CallFailed(f"{shown}: {words}") from None
        except aiohttp.ClientConnectorError as error:
            where = f"{error.host}:{error.port}"
            raise CallFailed(f"{shown}: dial tcp {where}: connect: {_reason(error.os_error)}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallFailed(f"{shown}: {error or type(error).__name__}") from None
        return _json(content)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _address(self, client_config: Object) -> tuple[str, str, str]:
        """The URL as it is shown, the one to connect to, and the host that the certificate must name."""
        if client_config.get("url"):
            url = str(client_config["url"])
            return url, url, url.split("://", 1)[1].split("/", 1)[0]
        service = client_config["service"]
        port, path = service.get("port") or 443, service.get("path") or "/"
        host = f"{service['name']}.{service['namespace']}.svc"
        address = self._endpoint(service["namespace"], service["name"], port) or f"127.0.0.1:{port}"
        return f"https://{host}:{port}{path}", f"https://{address}{path}", host

    def _endpoint(self, namespace: str, name: str, port: int) -> str | None:
        """The first ready address behind a port of a Service."""
        service = self._reader.get("services", name, namespace) if self._reader else None
        if service is None or self._reader is None:
            return None
        wanted = [p for p in service.get("spec", {}).get("ports", []) if p.get("port") == port]
        endpoints = self._reader.get("endpoints", name, namespace) or {}
        for subset in endpoints.get("subsets") or ():
            for each in subset.get("ports") or ():
                if subset.get("addresses") and (not wanted or each.get("name") == wanted[0].get("name")):
                    return f"{subset['addresses'][0]['ip']}:{each['port']}"
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


async def _whole(stream: aiohttp.StreamReader) -> bytes:
    content = bytearray()
    async for piece in stream.iter_any():
        content += piece
        if len(content) > _LARGEST_ANSWER:
            raise CallFailed(f"the response is larger than {_LARGEST_ANSWER} bytes")
    return bytes(content)


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


def _reason(error: OSError) -> str:
    return (os.strerror(error.errno) if error.errno else error.strerror or str(error)).lower()
