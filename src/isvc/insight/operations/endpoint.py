"""Where and how a service is asked: its URL, the path of its protocol, and the name that its model goes by."""

from __future__ import annotations

import shlex
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from isvc.api.resources import INFERENCE_GRAPHS, LLM_INFERENCE_SERVICES
from isvc.insight.operations import NotPossible
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import SERVICES
from isvc.serving.endpoints import predict_path
from isvc.toolkit.client import Client
from isvc.toolkit.failure import ClusterError

#: By a field that only requests of that protocol have.
_OPENAI: Final = {"messages": "chat/completions", "prompt": "completions", "input": "embeddings"}
_PROTOCOLS: Final = {"inputs": "v2", "instances": "v1"}


MOST: Final = 1 << 29  # bytes of an answer
LONGEST_REFUSAL: Final = 4096  # bytes that are read of one that says no


class Unanswered(NotPossible):
    """No answer, or one that says no and has a status; in one sentence."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`model` is filled into OpenAI requests that name none; `proxy` is the path through the API server.

    Without `direct` requests go that way alone: whoever wrote the URL must not choose where they are sent to.
    """

    url: str
    model: str = ""
    proxy: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    direct: bool = True

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"model": self.model, **body} if self.model else body

    def curl(self, body: dict[str, Any]) -> str:
        """Returns the same request as a line for a shell."""
        import orjson

        words = ["curl", *(["-N"] if body.get("stream") else []), self.url, "-H", "Content-Type: application/json"]
        return shlex.join([*words, "-d", orjson.dumps(body).decode()])

    async def post(self, client: Client, body: dict[str, Any], within: float, most: int = MOST) -> bytes:
        """Returns the answer; through the API server where the service's own host cannot be reached from here.

        One of more than `most` bytes is refused, and so is one that leads elsewhere.
        """
        import aiohttp

        if not self.direct:
            return await self._through_api_server(client, body, within, most)
        try:
            async with self._session(within) as session, session.post(self._target(), **self._request(body)) as answer:
                return await self._content(answer, most)
        except aiohttp.ClientConnectorError as error:
            if not self.proxy:
                raise Unanswered(f"{self.url} cannot be reached: {error}") from None
            return await self._through_api_server(client, body, within, most, f"{self.url} cannot be reached: {error}")
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise self._failure(error) from None

    async def get(self, client: Client, within: float, most: int = MOST) -> bytes:
        """Returns what is there. Raises Unanswered."""
        import aiohttp

        try:
            if not self.direct:
                if not self.proxy:
                    raise Unanswered(f"{self.url} can be asked directly alone")
                return self._refuse_long(await client.request_bytes("GET", self.proxy, within=within), most)
            request = {"headers": dict(self.headers), "allow_redirects": False}
            async with self._session(within) as session, session.get(self._target(), **request) as answer:
                return await self._content(answer, most)
        except (ApiError, ClusterError) as error:
            raise Unanswered(str(error)) from None
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise self._failure(error) from None

    async def stream(self, body: dict[str, Any], within: float) -> AsyncGenerator[str, None]:
        """Yields the text of server-sent events, piece by piece."""
        import aiohttp
        from aiohttp.http_exceptions import LineTooLong

        try:
            async with self._session(within) as session, session.post(self._target(), **self._request(body)) as answer:
                if answer.status >= 300:
                    await self._content(answer, LONGEST_REFUSAL)
                async for line in answer.content:
                    event = _event(line)
                    if error := event.get("error"):
                        raise Unanswered(f"{self.url} broke off: {dig(error, 'message') or error}")
                    if text := _piece(event):
                        yield text
        except LineTooLong:
            raise Unanswered(f"{self.url} sent a line that is too long for a stream of events") from None
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise self._failure(error) from None

    async def _through_api_server(
        self, client: Client, body: dict[str, Any], within: float, most: int, after: str = ""
    ) -> bytes:
        """`after` is what went wrong before."""
        import orjson

        if not self.proxy:
            raise Unanswered(f"{self.url} can be asked directly alone, and not from here: use the line for a shell")
        try:
            async with client.post_stream(self.proxy, orjson.dumps(body), within) as pieces:
                return self._refuse_long(await _read_at_most(pieces, most), most)
        except (ApiError, ClusterError) as error:
            if isinstance(error, ApiError) and not error.is_status:  # the service's own words, passed on
                self._check(error.status_code, "", error.message.encode())
            refused = f"the request through the API server failed: {' '.join(str(error).split())}"
            raise Unanswered(f"{after}; {refused}" if after else refused) from None

    def _failure(self, error: Exception) -> Unanswered:
        import aiohttp

        if isinstance(error, aiohttp.ClientError | TimeoutError):
            return Unanswered(f"{self.url} did not answer: {str(error) or 'timeout'}")
        return Unanswered(f"{self.url} cannot be asked: {error}; look at http_proxy and https_proxy")

    async def _content(self, answer: Any, most: int) -> bytes:
        content = await _read_at_most(answer.content.iter_any(), most)
        self._check(answer.status, answer.headers.get("Location", ""), content)
        return self._refuse_long(content, most)

    def _refuse_long(self, content: bytes, most: int) -> bytes:
        if len(content) > most:
            raise Unanswered(f"{self.url} answered with more than {most >> 20} MiB")
        return content

    def _request(self, body: dict[str, Any]) -> dict[str, Any]:
        import orjson

        headers = {"Content-Type": "application/json", **self.headers}
        return {"data": orjson.dumps(body), "headers": headers, "allow_redirects": False}

    def _target(self) -> str:
        """Returns the URL to connect to: names below localhost are this machine, whatever the resolver says."""
        import yarl

        url = yarl.URL(self.url)
        return str(url.with_host("127.0.0.1")) if (url.host or "").endswith(".localhost") else self.url

    def _session(self, within: float) -> Any:
        """Opens a session that uses a proxy of the environment, but never for this machine."""
        import aiohttp
        import yarl

        elsewhere = yarl.URL(self._target()).host not in ("localhost", "127.0.0.1", "::1")
        return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=within), trust_env=elsewhere)

    def _check(self, status: int, location: str, content: bytes) -> None:
        """Raises Unanswered for what is no answer. A server must not send us to others that it cannot reach itself."""
        if status >= 400:
            words = " ".join(content[:LONGEST_REFUSAL].decode(errors="replace").split())
            raise Unanswered(f"{self.url} answered {status}: {words[:500] or 'nothing more'}", status)
        if status >= 300:
            raise Unanswered(f"{self.url} answered {status}: it leads to {location[:200] or 'nowhere'}", status)


def parse_request(text: bytes | str) -> dict[str, Any]:
    """Returns a request that somebody has written; refuses what is no JSON object."""
    import orjson

    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise NotPossible(f"the request is not valid JSON: {error}") from None
    if not isinstance(body, dict):
        raise NotPossible("the request has to be a JSON object")
    return body


def find_endpoint(service: Object, body: dict[str, Any], path: str = "", *, direct: bool = True) -> Endpoint:
    """Returns where to send the request; refuses a service without an address and a request of no known protocol."""
    url = str(dig(service, "status", "url") or dig(service, "status", "address", "url") or "").rstrip("/")
    name = name_of(service)
    if not url:
        raise NotPossible(f"{name} has no URL yet; `isvc explain {name}` says why")
    path = path or _path(service, body)
    host = url.partition("://")[2].partition("/")[0]
    headers = {"Host": host} if host.partition(":")[0].endswith(".localhost") else {}
    openai = any(field in body for field in _OPENAI)
    model = str(dig(service, "spec", "model", "name") or name) if openai else ""
    return Endpoint(f"{url}/{path.lstrip('/')}", model, _proxy_path(service, path), headers, direct)


def _path(service: Object, body: dict[str, Any]) -> str:
    if service["kind"] == INFERENCE_GRAPHS.kind:
        return ""
    for field_name, path in _OPENAI.items():
        if field_name in body:
            return f"/v1/{path}" if service["kind"] == LLM_INFERENCE_SERVICES.kind else f"/openai/v1/{path}"
    for field_name, protocol in _PROTOCOLS.items():
        if field_name in body:
            return predict_path(name_of(service), protocol)
    known = ", ".join((*_PROTOCOLS, *_OPENAI))
    raise NotPossible(f"the request shows no protocol: it has none of {known}; give a --path")


def _proxy_path(service: Object, path: str) -> str:
    """Returns the path through the API server to the Service in front of the pods."""
    name = name_of(service)
    if service["kind"] == LLM_INFERENCE_SERVICES.kind:
        return ""
    backend = name
    if service["kind"] != INFERENCE_GRAPHS.kind:
        backend = f"{name}-{'transformer' if dig(service, 'spec', 'transformer') else 'predictor'}"
    return f"{SERVICES.path(namespace_of(service), f'http:{backend}:80')}/proxy/{path.lstrip('/')}"


def _event(line: bytes) -> dict[str, Any]:
    """Returns what a server-sent event says; nothing for lines that are none."""
    import orjson

    if line.startswith(b"data:"):
        with suppress(orjson.JSONDecodeError):
            event = orjson.loads(line[5:])
            return event if isinstance(event, dict) else {}
    return {}


def _piece(event: dict[str, Any]) -> str:
    choice = dig(event, "choices", 0)
    return str(dig(choice, "delta", "content") or choice.get("text") or "") if isinstance(choice, dict) else ""


async def _read_at_most(pieces: AsyncIterable[bytes], most: int) -> bytes:
    """Reads all of a body, or a little more than `most` bytes of it."""
    found = bytearray()
    async for piece in pieces:
        found += piece
        if len(found) > most:
            break
    return bytes(found)
