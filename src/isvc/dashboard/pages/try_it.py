"""A form that sends a prediction or a chat to a service, through the same gateway as everybody else.

A request that streams is answered in two steps, since browsers take server-sent events from a GET alone: the form gets
a number, and what listens at that number starts the request.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from html import escape
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import orjson
from aiohttp import web

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import Views
from isvc.dashboard.pages.addressed import SERVICE, addressed_service
from isvc.dashboard.pages.live import Event, stream
from isvc.dashboard.pages.rendering import pretty, render, respond, wants_json
from isvc.dashboard.pages.service import page_of
from isvc.insight.operations import NotPossible
from isvc.insight.operations.endpoint import Endpoint, find_endpoint, parse_request
from isvc.insight.operations.signature import sample_from_model
from isvc.kube.objects import Object, dig, uid_of
from isvc.kube.readiness import is_ready
from isvc.kube.resource import Resource
from isvc.toolkit.clock import Clock, SystemClock
from isvc.wire.bounded import Bounded

WITHIN: Final = 120.0  # seconds to wait for an answer
MOST_PREPARED: Final = 100
MOST_BYTES: Final = 4 << 20  # of an answer
MOST_SHOWN: Final = 80_000  # characters of it on the page
MOST_STREAMED: Final = 200_000
V1: Final = {"instances": [[6.8, 2.8, 4.8, 1.4]]}
V2: Final = {"inputs": [{"name": "input-0", "shape": [1, 4], "datatype": "FP32", "data": [6.8, 2.8, 4.8, 1.4]}]}
CHAT: Final = {"messages": [{"role": "user", "content": "Tell me about Paris."}], "max_tokens": 200, "stream": True}
SAMPLES: Final = {"v1": V1, "v2": V2, "chat": CHAT}


@dataclass(frozen=True, slots=True)
class Answer:
    """`seconds` is the latency as the dashboard saw it; `text` is the answer, or why there is none.

    An answer that says no has `failed` with its `status`; without one there was no answer.
    """

    url: str
    curl: str
    text: str
    seconds: float
    failed: bool = False
    status: int = 0


class Prepared(NamedTuple):
    target: Endpoint
    body: dict[str, Any]


class TryPages:
    def __init__(self, views: Views, clock: Clock | None = None) -> None:
        self._views = views
        self._clock = clock or SystemClock()
        self._prepared: Bounded[str, Prepared] = Bounded(MOST_PREPARED)
        self._worked: WeakKeyDictionary[ClusterView, Bounded[str, dict[str, Any]]] = WeakKeyDictionary()

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get(SERVICE + "/try", self._form),
            web.post(SERVICE + "/try", self._send),
            web.get(SERVICE + "/try/{number}", self._stream),
        ]

    async def _form(self, request: web.Request) -> web.Response:
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            body = SAMPLES.get(request.query.get("sample", "")) or await self._first_request(view, resource, service)
            return respond(request, page_of(view, resource, service, "try.html", {"request": body, "answer": None}))

    async def _send(self, request: web.Request) -> web.Response:
        body = parse_request(str((await request.post()).get("request", "")))
        async with self._views.use(request) as view:
            resource, service = addressed_service(view, request)
            target = find_endpoint(service, body, direct=self._views.asks_directly)
            body = target.complete(body)
            if body.get("stream") and "HX-Request" in request.headers and target.direct:
                number = self._prepare(Prepared(target, body))
                fragment = render("try_stream.html", path=f"{request.path}/{number}", curl=target.curl(body))
                return web.Response(text=fragment, content_type="text/html")
            answer = await self._answer(Prepared(target, {**body, "stream": False} if "stream" in body else body), view)
            if not answer.failed:
                self._remember(view, service, body)
            shown = {"request": body, "answer": answer}
            if "HX-Request" in request.headers and not wants_json(request):
                return web.Response(text=render("answer.html", answer=answer), content_type="text/html")
            return respond(request, page_of(view, resource, service, "try.html", shown))

    async def _first_request(self, view: ClusterView, resource: Resource, service: Object) -> dict[str, Any]:
        """Returns the last request that worked, or one that fits what the model says of its inputs, or a sample."""
        if (worked := self._worked.get(view)) is not None and uid_of(service) in worked:
            return worked[uid_of(service)]
        sample = sample_request(resource, service)
        if sample is CHAT or not is_ready(service):
            return sample
        direct = self._views.asks_directly
        return await sample_from_model(view.client, service, v1=sample is V1, direct=direct) or sample

    def _remember(self, view: ClusterView, service: Object, body: dict[str, Any]) -> None:
        """Keeps what worked, for those who see the same of the cluster."""
        self._worked.setdefault(view, Bounded(MOST_PREPARED))[uid_of(service)] = body

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        prepared = self._prepared.pop(request.match_info["number"], None)
        if prepared is None:  # a browser that connects again must not send the request again
            return web.Response(status=204)
        return await stream(request, self._pieces(prepared))

    def _prepare(self, prepared: Prepared) -> str:
        number = secrets.token_urlsafe(12)
        self._prepared[number] = prepared
        return number

    async def _answer(self, prepared: Prepared, view: ClusterView) -> Answer:
        started, failed, status = self._clock.monotonic(), False, 0
        try:
            text = _readable_answer(await prepared.target.post(view.client, prepared.body, WITHIN, MOST_BYTES))
        except NotPossible as error:
            text, failed, status = str(error), True, getattr(error, "status", 0)
        seconds = self._clock.monotonic() - started
        return Answer(prepared.target.url, prepared.target.curl(prepared.body), text, seconds, failed, status)

    async def _pieces(self, prepared: Prepared) -> AsyncGenerator[Event, None]:
        started, first, pieces, characters = self._clock.monotonic(), 0.0, 0, 0
        try:
            async with aclosing(prepared.target.stream(prepared.body, WITHIN)) as streamed:
                async for piece in streamed:
                    first = first or self._clock.monotonic() - started
                    pieces, characters = pieces + 1, characters + len(piece)
                    if characters > MOST_STREAMED:
                        raise NotPossible("the answer is longer than a page should be; the rest is left out")
                    yield Event("piece", f"<span>{escape(piece)}</span>")
        except NotPossible as error:
            yield Event("piece", render("failure.html", message=str(error)))
        seconds = self._clock.monotonic() - started
        yield Event("latency", render("latency.html", first=first, seconds=seconds, pieces=pieces))
        yield Event("done", "")


def _readable_answer(answer: bytes) -> str:
    try:
        text = pretty(orjson.loads(answer))
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):  # nested so deeply that it can be read and not written
        text = answer.decode(errors="replace")
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}\n… {len(text):,} characters in all"


def sample_request(resource: Resource, service: Object) -> dict[str, Any]:
    """Returns a request to begin with, in the protocol that the service most likely speaks."""
    model = dig(service, "spec", "predictor", "model") or {}
    if resource == LLM_INFERENCE_SERVICES or dig(model, "modelFormat", "name") == "huggingface":
        return CHAT
    return V2 if model.get("protocolVersion") == "v2" else V1
