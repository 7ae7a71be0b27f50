"""Batches predictions: requests of the v1 protocol are joined until they are enough, or the first has waited enough."""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from dataclasses import dataclass, field

import aiohttp
import msgspec
from aiohttp import web

from isvc.pods.agent.exchange import Handler, ModelServer

log = logging.getLogger("isvc.pods.agent")

_PREDICT = re.compile(r":predict$")


class Prediction(msgspec.Struct):
    """A request and its answer. Instances and predictions are passed on as they were written."""

    instances: list[msgspec.Raw] | None = None
    predictions: list[msgspec.Raw] | None = None


@dataclass(slots=True)
class Batch:
    """Instances of several requests to one path, and where each request's own begin."""

    instances: list[msgspec.Raw] = field(default_factory=list)
    asked: list[tuple[asyncio.Future[web.Response], slice]] = field(default_factory=list)

    def add(self, instances: list[msgspec.Raw], answer: asyncio.Future[web.Response]) -> None:
        start = len(self.instances)
        self.instances += instances
        self.asked.append((answer, slice(start, len(self.instances))))


class Batcher:
    """The model server as seen through batches. Requests that are no predictions go straight on."""

    def __init__(self, server: ModelServer, forward: Handler, max_size: int, max_latency: float) -> None:
        self._server = server
        self._forward = forward
        self._max_size = max_size
        self._max_latency = max_latency
        self._open: dict[str, Batch] = {}
        self._sent: set[asyncio.Task[None]] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if not _PREDICT.search(request.path):
            return await self._forward(request)
        try:
            instances = _parsed(await request.read()).instances
        except ValueError:
            return web.Response(text="can't Unmarshal body\n", status=400)
        if not instances:
            return web.Response(text="no instances in the request\n", status=400)
        return await self._join(request.path, instances)

    async def _join(self, path: str, instances: list[msgspec.Raw]) -> web.Response:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[web.Response] = loop.create_future()
        batch = self._open.get(path)
        if batch is None:
            batch = self._open[path] = Batch()
            loop.call_later(self._max_latency, self._send, path, batch)
        batch.add(instances, answer)
        if len(batch.instances) >= self._max_size:
            self._send(path, batch)
        return await answer

    def _send(self, path: str, batch: Batch) -> None:
        if self._open.get(path) is not batch:
            return  # it was large enough before its time
        del self._open[path]
        task = asyncio.create_task(self._predict(path, batch))
        self._sent.add(task)
        task.add_done_callback(self._sent.discard)

    async def _predict(self, path: str, batch: Batch) -> None:
        predictions: list[msgspec.Raw] | None = None
        try:
            status, body = await self._server.post(path, msgspec.json.encode({"instances": batch.instances}))
            message = body.decode("utf-8", "replace")
            if status == 200:
                predictions, message = _predictions(body, len(batch.instances))
                status = 200 if predictions is not None else 502
        except (aiohttp.ClientError, OSError) as error:
            status, message = 502, f"the model server does not answer: {error}"
        batch_id = str(uuid.uuid4()) if predictions is not None else ""
        for answer, own in batch.asked:
            if not answer.done():  # its client may have gone
                share = predictions[own] if predictions is not None else None
                answer.set_result(_answer({"message": message, "batchId": batch_id, "predictions": share}, status))


def _predictions(body: bytes, count: int) -> tuple[list[msgspec.Raw] | None, str]:
    """One prediction for every instance, or what is wrong with the answer."""
    try:
        predictions = _parsed(body).predictions
    except ValueError as error:
        return None, str(error)
    if predictions is None or len(predictions) != count:
        return None, "size of prediction is not equal to the size of instances"
    return predictions, ""


def _parsed(body: bytes) -> Prediction:
    """Raises ValueError for what is no JSON, or nested too deeply."""
    try:
        return msgspec.json.decode(body, type=Prediction)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def _answer(document: dict[str, object], status: int) -> web.Response:
    return web.Response(body=msgspec.json.encode(document), status=status, content_type="application/json")
