"""The HTTP side of the model server: the v1 and v2 protocols, health, metadata and metrics."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest

from isvc.pods.modelserver.errors import ModelNotFound, ModelNotReady, ServingError, Unsupported
from isvc.pods.modelserver.model import Headers, Model, Payload
from isvc.pods.modelserver.repository import Repository
from isvc.pods.modelserver.tensors import (
    BINARY_HEADER,
    InferRequest,
    InferResponse,
    decode_request,
    encode_response,
    json_object,
)

log = logging.getLogger("isvc.pods.modelserver")

_MAX_BODY = 1 << 30
# What curl -d and plain clients send without meaning it: read as JSON all the same.
_JSON_LIKE = {"application/json", "application/octet-stream", "application/x-www-form-urlencoded", "text/plain"}


class Server:
    def __init__(self, models: Iterable[Model], version: str = "", repository: Repository | None = None) -> None:
        self.models = {model.name: model for model in models}
        self.repository = repository
        self.version = version
        self.draining = False
        self.registry = CollectorRegistry()
        self._steps = {
            step: Histogram(f"request_{step}_seconds", f"{step} latency", ["model_name"], registry=self.registry)
            for step in ("preprocess", "predict", "postprocess", "explain")
        }

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._errors], client_max_size=_MAX_BODY)
        name = r"{name:[^/:]+}"
        app.add_routes(
            [
                web.get("/", self._alive),
                web.get("/metrics", self._metrics),
                web.get("/v1/models", self._names),
                web.get(f"/v1/models/{name}", self._model_ready),
                web.post(f"/v1/models/{name}:{{verb:predict|explain}}", self._ask),
                web.get("/v2", self._server_metadata),
                web.get("/v2/health/live", self._live),
                web.get("/v2/health/ready", self._ready),
                web.get("/v2/models", self._names),
                web.get(f"/v2/models/{name}", self._model_metadata),
                web.get(f"/v2/models/{name}/ready", self._model_ready),
                web.post(f"/v2/models/{name}/infer", self._infer),
            ]
        )
        if self.repository is not None:
            app.add_routes(self.repository.routes(self.models))
        return app

    # -- what every protocol asks -------------------------------------------------------------------------------------

    @property
    def is_ready(self) -> bool:
        return not self.draining and all(model.ready for model in self.models.values())

    def metadata(self) -> dict[str, Any]:
        return {"name": "isvc-modelserver", "version": self.version, "extensions": ["binary_tensor_data"]}

    def model(self, name: str) -> Model:
        if name not in self.models:
            raise ModelNotFound(name)
        return self.models[name]

    def ready_model(self, name: str) -> Model:
        model = self.model(name)
        if not model.ready:
            raise ModelNotReady(name)
        return model

    # -- v1 ---------------------------------------------------------------------------------------------------------

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        model, verb = self._requested_model(request), request.match_info["verb"]
        return await _encode(request, await self.run(model, verb, await _decode_v1(request), request.headers))

    # -- v2 ---------------------------------------------------------------------------------------------------------

    async def _infer(self, request: web.Request) -> web.StreamResponse:
        model = self._requested_model(request)
        asked = decode_request(await request.read(), request.headers.get(BINARY_HEADER))
        result = await self.run(model, "predict", asked, request.headers)
        if not isinstance(result, InferResponse):
            return await _encode(request, result)
        body, json_length = encode_response(result, asked)
        if json_length is None:
            return web.Response(body=body, content_type="application/json")
        headers = {BINARY_HEADER: str(json_length)}
        return web.Response(body=body, content_type="application/octet-stream", headers=headers)

    async def _server_metadata(self, request: web.Request) -> web.Response:
        return _json(self.metadata())

    async def _model_metadata(self, request: web.Request) -> web.Response:
        model = self.model(request.match_info["name"])
        types = {"inputs": model.input_types(), "outputs": model.output_types()}
        return _json({"name": model.name, "platform": "", **types})

    # -- health -----------------------------------------------------------------------------------------------------

    async def _alive(self, request: web.Request) -> web.Response:
        return _json({"status": "alive"})

    async def _live(self, request: web.Request) -> web.Response:
        return _json({"live": True})

    async def _ready(self, request: web.Request) -> web.Response:
        return _json({"ready": True}) if self.is_ready else _json({"error": "Server is not ready."}, 503)

    async def _names(self, request: web.Request) -> web.Response:
        return _json({"models": list(self.models)})

    async def _model_ready(self, request: web.Request) -> web.Response:
        return _json({"name": self._requested_model(request).name, "ready": True})

    async def _metrics(self, request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    # -- what the handlers share --------------------------------------------------------------------------------------

    def _requested_model(self, request: web.Request) -> Model:
        return self.ready_model(request.match_info["name"])

    async def run(self, model: Model, verb: str, payload: Payload, headers: Headers) -> Any:
        prepared = await self._step("preprocess", model, model.preprocess, payload, headers)
        result = await self._step(verb, model, getattr(model, verb), prepared, headers)
        return await self._step("postprocess", model, model.postprocess, result, headers)

    async def _step(self, step: str, model: Model, call: Callable[..., Any], value: Any, headers: Headers) -> Any:
        if getattr(call, "__func__", None) in _PASS_THROUGH:
            return value
        with self._steps[step].labels(model.name).time():
            if inspect.iscoroutinefunction(call):
                return await call(value, headers)
            result = await asyncio.get_running_loop().run_in_executor(None, call, value, headers)
            return await result if inspect.isawaitable(result) else result  # a decorator may hide a coroutine

    @web.middleware
    async def _errors(self, request: web.Request, handler: Callable[[web.Request], Any]) -> web.StreamResponse:
        try:
            _refuse_compressed(request)
            response: web.StreamResponse = await handler(request)
        except ServingError as error:
            response = _json({"error": str(error)}, error.status)
        except NotImplementedError as error:
            response = _json({"error": str(error)}, Unsupported.status)
        except web.HTTPException as error:
            response = _json({"error": error.reason}, error.status)
        except Exception as error:
            log.exception("%s %s", request.method, request.path)
            response = _json({"error": f"{type(error).__name__} : {error}"}, 500)
        if self.draining and not response.prepared:
            response.force_close()
        return response


def _refuse_compressed(request: web.Request) -> None:
    """Refuses compressed bodies, as KServe's servers do: a small one must not become a huge one here."""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise web.HTTPUnsupportedMediaType(reason="compressed requests are not supported")


_PASS_THROUGH = {Model.preprocess, Model.postprocess}


def _json(document: Any, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")


async def _decode_v1(request: web.Request) -> Payload:
    body = await request.read()
    if request.content_type not in _JSON_LIKE and not request.content_type.endswith("+json"):
        return body
    return json_object(body)


async def _encode(request: web.Request, result: Any) -> web.StreamResponse:
    if isinstance(result, AsyncIterator):
        return await _stream(request, result)
    if isinstance(result, str):
        return web.Response(text=result)
    if isinstance(result, bytes):
        return web.Response(body=result)
    if isinstance(result, InferResponse | InferRequest):
        result = result.to_json()
    body = orjson.dumps(result, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return web.Response(body=body, content_type="application/json")


async def _stream(request: web.Request, chunks: AsyncIterator[Any]) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    async for chunk in chunks:
        await response.write(chunk.encode() if isinstance(chunk, str) else chunk)
    await response.write_eof()
    return response
