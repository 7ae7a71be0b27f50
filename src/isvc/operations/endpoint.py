"""Where and how a service is asked: its URL, the path of its protocol, and the name that its model goes by."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from isvc.api.resources import INFERENCE_GRAPHS, LLM_INFERENCE_SERVICES
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.resource import SERVICES
from isvc.operations.failure import NotPossible
from isvc.serving.endpoints import predict_path
from isvc.toolkit.client import Client

#: By a field that only requests of that protocol have.
_OPENAI: Final = {"messages": "chat/completions", "prompt": "completions", "input": "embeddings"}
_PROTOCOLS: Final = {"inputs": "v2", "instances": "v1"}


class Unanswered(NotPossible):
    """No answer, or one that says no; in one sentence."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`model` is filled into OpenAI requests that name none; `proxy` is the path through the API server."""

    url: str
    model: str = ""
    proxy: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def completed(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"model": self.model, **body} if self.model else body

    def curl(self, body: dict[str, Any]) -> str:
        """The same request as a line for a shell."""
        import orjson

        words = ["curl", *(["-N"] if body.get("stream") else []), self.url, "-H", "Content-Type: application/json"]
        return shlex.join([*words, "-d", orjson.dumps(body).decode()])

    async def post(self, client: Client, body: dict[str, Any], within: float) -> bytes:
        """The answer; through the API server where the service's own host cannot be reached from here."""
        import aiohttp

        try:
            async with _session(within) as session, session.post(self._target(), **self._request(body)) as answer:
                content: bytes = await answer.read()
                if answer.status >= 400:
                    raise Unanswered(self._refusal(answer.status, content))
                return content
        except aiohttp.ClientConnectorError as error:
            return await self._through_api_server(client, body, within, error)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(f"{self.url} did not answer: {error or 'timeout'}") from None

    async def stream(self, body: dict[str, Any], within: float) -> AsyncIterator[str]:
        """The text of server-sent events, piece by piece."""
        import aiohttp

        try:
            async with _session(within) as session, session.post(self._target(), **self._request(body)) as answer:
                if answer.status >= 400:
                    raise Unanswered(self._refusal(answer.status, await answer.read()))
                async for line in answer.content:
                    if text := _piece(line):
                        yield text
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Unanswered(f"{self.url} did not answer: {error or 'timeout'}") from None

    async def _through_api_server(self, client: Client, body: dict[str, Any], within: float, error: Exception) -> bytes:
        import orjson

        if not self.proxy:
            raise Unanswered(f"{self.url} cannot be reached: {error}") from None
        try:
            return await client.request_bytes("POST", self.proxy, orjson.dumps(body), within=within)
        except ApiError as refused:
            message = f"{self.url} cannot be reached ({error}), nor can the service through the API server: {refused}"
            raise Unanswered(message) from None

    def _request(self, body: dict[str, Any]) -> dict[str, Any]:
        import orjson

        return {"data": orjson.dumps(body), "headers": {"Content-Type": "application/json", **self.headers}}

    def _target(self) -> str:
        """The URL to connect to: names below localhost are this machine, also where the resolver does not know them."""
        import yarl

        url = yarl.URL(self.url)
        return str(url.with_host("127.0.0.1")) if (url.host or "").endswith(".localhost") else self.url

    def _refusal(self, status: int, content: bytes) -> str:
        words = " ".join(content.decode(errors="replace").split())
        return f"{self.url} answered {status}: {words[:500] or 'nothing more'}"


def endpoint(service: Object, body: dict[str, Any], path: str = "") -> Endpoint:
    """Where to send the request; refuses a service that has no address, and a request of no known protocol."""
    url = str(dig(service, "status", "url") or dig(service, "status", "address", "url") or "").rstrip("/")
    name = name_of(service)
    if not url:
        raise NotPossible(f"{name} has no URL yet; `isvc explain {name}` says why")
    path = path or _path(service, body)
    host = url.partition("://")[2].partition("/")[0]
    headers = {"Host": host} if host.partition(":")[0].endswith(".localhost") else {}
    openai = any(field in body for field in _OPENAI)
    proxy = _proxy_path(service, path)
    return Endpoint(f"{url}/{path.lstrip('/')}", _model(service) if openai else "", proxy, headers)


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


def _model(service: Object) -> str:
    return str(dig(service, "spec", "model", "name") or name_of(service))


def _proxy_path(service: Object, path: str) -> str:
    """Through the API server to the Service in front of the pods."""
    name = name_of(service)
    if service["kind"] == LLM_INFERENCE_SERVICES.kind:
        return ""
    backend = name
    if service["kind"] != INFERENCE_GRAPHS.kind:
        backend = f"{name}-{'transformer' if dig(service, 'spec', 'transformer') else 'predictor'}"
    return f"{SERVICES.path(namespace_of(service), f'http:{backend}:80')}/proxy/{path.lstrip('/')}"


def _piece(line: bytes) -> str:
    import orjson

    if not line.startswith(b"data:") or line.strip() == b"data: [DONE]":
        return ""
    try:
        event = orjson.loads(line[5:])
    except orjson.JSONDecodeError:
        return ""
    choice = dig(event, "choices", 0) or {}
    return str(dig(choice, "delta", "content") or choice.get("text") or "")


def _session(within: float) -> Any:
    import aiohttp

    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=within), trust_env=True)
