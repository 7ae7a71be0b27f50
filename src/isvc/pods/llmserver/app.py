"""The HTTP side: OpenAI's paths, the ones that vLLM adds, health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST

from isvc.pods.llmserver.catalogue import Catalogue
from isvc.pods.llmserver.errors import ApiError, BadRequest, NotFound, TooLarge, Unauthorized, Unavailable, error_body
from isvc.pods.llmserver.flags import VLLM_VERSION
from isvc.pods.llmserver.generation import Generator
from isvc.pods.llmserver.llama.engine import Engine
from isvc.pods.llmserver.llama.scheduler import Scheduler
from isvc.pods.llmserver.metrics import Metrics
from isvc.pods.llmserver.openai import embeddings, text, tokens
from isvc.pods.llmserver.openai.protocol import (
    ChatRequest,
    CompletionRequest,
    DetokenizeRequest,
    EmbeddingRequest,
    TokenizeRequest,
    decode,
)
from isvc.pods.llmserver.openai.responses_api import ResponseRequest

log = logging.getLogger("isvc.pods.llmserver")

Json = dict[str, Any]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T", bound=msgspec.Struct)

_MAX_BODY = 32 << 20
_KSERVE = "/openai"  # where KServe's Hugging Face server has OpenAI's paths
_CACHE_REPORT_SECONDS = 0.5


class App:
    def __init__(
        self,
        engine: Engine,
        catalogue: Catalogue,
        sequences: int,
        *,
        keys: tuple[str, ...] = (),
        embeds_only: bool = False,
    ) -> None:
        self.draining = False
        self._engine = engine
        self._catalogue = catalogue
        self._keys = [key.encode() for key in keys]
        self._embeds_only = embeds_only
        self._scheduler = Scheduler(sequences)
        self._metrics = Metrics(catalogue.names[0], engine.max_model_len)
        self._generator = Generator(engine, self._scheduler, self._metrics)
        self._cache_usage = 0.0
        self._tokens_in_cache = sequences * engine.max_model_len

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._errors, self._authentication], client_max_size=_MAX_BODY)
        for prefix in ("", _KSERVE):
            app.add_routes(
                [
                    web.get(f"{prefix}/v1/models", self._models),
                    web.get(f"{prefix}/v1/models/{{name:.+}}", self._model),
                    web.post(f"{prefix}/v1/chat/completions", self._chat),
                    web.post(f"{prefix}/v1/completions", self._completions),
                    web.post(f"{prefix}/v1/responses", self._responses),
                    web.post(f"{prefix}/v1/embeddings", self._embeddings),
                ]
            )
        app.add_routes([web.get(path, self._health) for path in ("/health", "/v2/health/ready")])
        app.add_routes([web.get(path, self._alive) for path in ("/", "/v2/health/live")])
        app.add_routes(
            [
                web.get("/ping", self._health),
                web.post("/ping", self._health),
                web.get("/version", self._version),
                web.get("/metrics", self._report),
                web.post("/tokenize", self._tokenize),
                web.post("/detokenize", self._detokenize),
            ]
        )
        return app

    # -- text and embeddings ----------------------------------------------------------------------------------------

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self._refuse_text("Chat Completions")
        return await self._generate(text.chat(await _read(request, ChatRequest), self._catalogue), request)

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        self._refuse_text("Completions")
        return await self._generate(text.completion(await _read(request, CompletionRequest), self._catalogue), request)

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        self._refuse_text("Responses")
        job = text.chat((await _read(request, ResponseRequest)).chat(), self._catalogue)
        await tokens.check_room(job.runs[0].body, self._engine)
        return await text.respond(job, self._generator, request)

    async def _generate(self, job: text.Job, request: web.Request) -> web.StreamResponse:
        for run in job.runs[:: job.answers]:  # the answers to one prompt differ in their seeds alone
            await tokens.check_room(run.body, self._engine)
        return await text.answer(job, self._generator, request)

    async def _embeddings(self, request: web.Request) -> web.StreamResponse:
        asked = await _read(request, EmbeddingRequest)
        return _json(await embeddings.embed(asked, self._catalogue, self._engine, self._scheduler))

    async def _tokenize(self, request: web.Request) -> web.StreamResponse:
        asked = await _read(request, TokenizeRequest)
        self._catalogue.choose(asked.model)
        return _json(await tokens.tokenize(asked, self._engine))

    async def _detokenize(self, request: web.Request) -> web.StreamResponse:
        asked = await _read(request, DetokenizeRequest)
        self._catalogue.choose(asked.model)
        return _json(await tokens.detokenize(asked, self._engine))

    def _refuse_text(self, name: str) -> None:
        if self._embeds_only:
            raise BadRequest(f"The model does not support the {name} API: it was made for embeddings.")

    # -- what is served, and how it does ----------------------------------------------------------------------------

    async def _models(self, request: web.Request) -> web.StreamResponse:
        return _json(self._catalogue.listing(self._engine.max_model_len))

    async def _model(self, request: web.Request) -> web.StreamResponse:
        name = self._catalogue.choose(request.match_info["name"]).name
        cards = self._catalogue.listing(self._engine.max_model_len)["data"]
        return _json(next(card for card in cards if card["id"] == name))

    async def _alive(self, request: web.Request) -> web.StreamResponse:
        return _json({"status": "alive"})

    async def _health(self, request: web.Request) -> web.StreamResponse:
        if self.draining or not self._engine.ready:
            raise Unavailable("The server is stopping." if self.draining else "The model is being loaded again.")
        return _json({"status": "ok"})

    async def _version(self, request: web.Request) -> web.StreamResponse:
        return _json({"version": VLLM_VERSION})

    async def _report(self, request: web.Request) -> web.StreamResponse:
        await self._measure_cache()
        body = self._metrics.expose(self._scheduler, self._cache_usage, len(self._catalogue.adapters))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _measure_cache(self) -> None:
        """Asks llama.cpp, which answers between two steps; while it reads a long prompt, the last figure stands."""
        if not self._scheduler.running:
            self._cache_usage = 0.0
            return
        with contextlib.suppress(TimeoutError, ApiError):
            async with asyncio.timeout(_CACHE_REPORT_SECONDS):
                slots = await self._engine.get("/slots")
            used = sum(slot["n_prompt_tokens"] for slot in slots if slot["is_processing"])
            self._cache_usage = min(1.0, used / self._tokens_in_cache)

    # -- around every request ---------------------------------------------------------------------------------------

    @web.middleware
    async def _errors(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except ApiError as error:
            return _json(error.body(), error.status)
        except web.HTTPNotFound:
            return _json(NotFound(f"There is no {request.path} here.").body(), NotFound.status)
        except web.HTTPRequestEntityTooLarge:
            return _json(TooLarge(f"The body is larger than {_MAX_BODY >> 20} MiB.").body(), TooLarge.status)
        except web.HTTPException as error:
            return _json(error_body(error.status, "BadRequestError", error.reason), error.status)
        except ConnectionError:
            raise  # the client has gone
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return _json(error_body(500, "InternalServerError", "The server failed to answer this request."), 500)

    @web.middleware
    async def _authentication(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Asks for a key for /v1, as vLLM does; health and metrics are open."""
        if self._keys and request.path.removeprefix(_KSERVE).startswith("/v1/"):
            scheme, _, key = request.headers.get("Authorization", "").partition(" ")
            given = key.strip().encode(errors="replace")
            if scheme.lower() != "bearer" or not any(hmac.compare_digest(given, known) for known in self._keys):
                raise Unauthorized("The API key is missing or wrong.")
        return await handler(request)


async def _read(request: web.Request, kind: type[T]) -> T:
    return decode(await request.read(), kind)


def _json(body: Json, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json")
