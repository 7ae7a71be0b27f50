"""Calls of services: retries, timeouts, answers that are passed on while they come, and TLS that a mesh speaks."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from isvc.pods.router.execution import Answer, RoutingError
from isvc.pods.router.graph import Step
from isvc.wire.failures import message_of

MAX_BODY: Final = 1 << 30
LARGE: Final = 1 << 20  # bytes of an answer that nobody has to look at, and that is passed on as it comes
_MAX_REDIRECTS: Final = 10
_TRIED_AGAIN: Final = frozenset({502, 503, 504})  # as Envoy's gateway-error
_FIRST_PAUSE, _LONGEST_PAUSE = 0.025, 1.0
_STREAMS: Final = frozenset({"text/event-stream", "application/x-ndjson", "application/jsonl"})
_SIDECAR = URL("http://localhost:15000")
_PATIENCE = aiohttp.ClientTimeout(total=3)


class ServiceStream:
    """An answer that is still on its way."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        kept = ("Content-Type", "Cache-Control")
        self.headers: Mapping[str, str] = {name: response.headers[name] for name in kept if name in response.headers}

    async def chunks(self) -> AsyncIterator[bytes]:
        async for chunk in self._response.content.iter_any():
            yield chunk

    def close(self) -> None:
        """Ends the connection, unless all of the answer came."""
        self._response.release() if self._response.content.is_eof() else self._response.close()


class Services:
    """Calls services in one session. `timeout` is for steps that have none of their own, in seconds."""

    def __init__(self, session: aiohttp.ClientSession, timeout: float | None) -> None:
        self._session, self._timeout = session, timeout
        self._mesh = Mesh()

    async def call(
        self, step: Step, path: str, body: bytes, headers: CIMultiDict[str], *, last: bool, retried: Callable[[], None]
    ) -> Answer:
        """Returns a step's answer, of the last one perhaps as a stream; raises RoutingError where there is none."""
        url = step.service_url.rstrip("/") + path if step.append_request_path else step.service_url
        for tries in itertools.count():
            is_final = tries >= step.retries
            try:
                answer = await self._try(url, step.timeout_seconds or self._timeout, body, headers, last=last)
                if is_final or answer.status not in _TRIED_AGAIN:
                    return answer
                if answer.stream is not None:
                    answer.stream.close()
            except RoutingError:
                if is_final:
                    raise
            retried()
            await asyncio.sleep(random.uniform(0.5, 1) * min(_FIRST_PAUSE * 2**tries, _LONGEST_PAUSE))  # noqa: S311
        raise AssertionError

    async def _try(
        self, url: str, limit: float | None, body: bytes, headers: CIMultiDict[str], *, last: bool
    ) -> Answer:
        try:
            async with asyncio.timeout(limit):
                target = await self._mesh.target(URL(url, encoded=True), self._session)
                response = await self._session.post(
                    target, data=body, headers=headers, max_redirects=_MAX_REDIRECTS, proxy=_proxy_for(target)
                )
                if last and _is_stream(response):
                    return Answer(b"", response.status, ServiceStream(response))
                async with response:
                    return Answer(await _read(response), response.status)
        except TimeoutError:
            raise RoutingError(f'Post "{url}": no answer within {limit:g} s' if limit else f'Post "{url}"') from None
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise RoutingError(f'Post "{url}": {message_of(error)}') from None


def _proxy_for(url: URL) -> str | None:
    """Returns the environment's proxy. A session that read the environment by itself would read ~/.netrc, too."""
    return None if proxy_bypass(url.host or "") else getproxies().get(url.scheme)


def _is_stream(response: aiohttp.ClientResponse) -> bool:
    """Returns whether an answer is passed on as it comes; its type then is what the service says, and not guessed."""
    length = response.content_length
    return response.content_type in _STREAMS or length is None or length > LARGE


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MAX_BODY:
            raise RoutingError(f'Post "{response.url}": the answer has more than {MAX_BODY} bytes')
    return bytes(body)


class Mesh:
    """Whether the router's pod is part of an Istio mesh, where the sidecar and not the router speaks TLS.

    Asks once, at the first request over TLS: at the start the sidecar may not be there yet.
    """

    def __init__(self) -> None:
        self._joined: bool | None = None

    async def target(self, url: URL, session: aiohttp.ClientSession) -> URL:
        if url.scheme != "https":
            return url
        if self._joined is None:
            self._joined = await _sidecar_answers(session)
        return url.with_scheme("http") if self._joined else url


async def _sidecar_answers(session: aiohttp.ClientSession) -> bool:
    try:
        async with session.get(_SIDECAR, timeout=_PATIENCE) as response:
            return response.status == 200
    except (aiohttp.ClientError, OSError):
        return False
