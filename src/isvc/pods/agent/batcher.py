"""Batches predictions: requests of the v1 protocol are joined until they are enough, or the first has waited enough."""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from isvc.pods.agent.http1 import Head
from isvc.pods.agent.model_server import ModelServer

log = logging.getLogger("isvc.pods.agent")

MAX_BODY = 64 << 20  # of one request
_PREDICT = re.compile(r"[^?#]*:predict(?=[?#]|$)")
_PLAIN = "text/plain; charset=utf-8"

Answer: TypeAlias = tuple[int, bytes, str]  # status, body, content type


class Prediction(msgspec.Struct):
    """A request and its answer. Instances and predictions are passed on as they were written."""

    instances: list[msgspec.Raw] | None = None
    predictions: list[msgspec.Raw] | None = None


@dataclass(slots=True)
class Batch:
    """Instances of several requests to one path, and where each request's own begin."""

    trace: str  # of the first request
    instances: list[msgspec.Raw] = field(default_factory=list)
    asked: list[tuple[asyncio.Future[Answer], slice]] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None  # which would keep a batch in memory that was sent long ago

    def add(self, instances: list[msgspec.Raw], answer: asyncio.Future[Answer]) -> None:
        start = len(self.instances)
        self.instances += instances
        self.asked.append((answer, slice(start, len(self.instances))))


class Batcher:
    """The model server as seen through batches."""

    def __init__(self, server: ModelServer, max_size: int, max_latency: float) -> None:
        self._server = server
        self._max_size = max_size
        self._max_latency = max_latency
        self._open: dict[str, Batch] = {}
        self._sent: set[asyncio.Task[None]] = set()

    def takes(self, request: Head) -> bool:
        """Returns whether a request is a prediction; others go straight on."""
        return _PREDICT.match(request.target) is not None

    async def predict(self, request: Head, body: bytes) -> Answer:
        try:
            instances = _parse(body).instances
        except ValueError:
            return 400, b"can't Unmarshal body\n", _PLAIN
        if not instances:
            return 400, b"no instances in the request\n", _PLAIN
        path = request.target.partition("?")[0]
        return await self._join(path, instances, request.headers.get("traceparent"))

    async def _join(self, path: str, instances: list[msgspec.Raw], trace: str) -> Answer:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        batch = self._open.get(path)
        if batch is None:
            batch = self._open[path] = Batch(trace)
            batch.timer = loop.call_later(self._max_latency, self._send, path, batch)
        batch.add(instances, answer)
        if len(batch.instances) >= self._max_size:
            self._send(path, batch)
        return await answer

    def _send(self, path: str, batch: Batch) -> None:
        del self._open[path]
        if batch.timer is not None:
            batch.timer.cancel()
        task = asyncio.create_task(self._predict(path, batch))
        self._sent.add(task)
        task.add_done_callback(self._sent.discard)

    async def _predict(self, path: str, batch: Batch) -> None:
        predictions: list[msgspec.Raw] | None = None
        try:
            asked = msgspec.json.encode({"instances": batch.instances})
            status, body = await self._server.post(path, asked, batch.trace)
            message = body.decode("utf-8", "replace")
            if status == 200:
                predictions, message = _predictions(body, len(batch.instances))
                status = 200 if predictions is not None else 502
        except (OSError, ValueError) as error:
            status, message = 502, f"the model server does not answer: {error}"
        batch_id = str(uuid.uuid4()) if predictions is not None else ""
        for answer, own in batch.asked:
            if not answer.done():  # its client may have gone
                share = predictions[own] if predictions is not None else None
                document = {"message": message, "batchId": batch_id, "predictions": share}
                answer.set_result((status, msgspec.json.encode(document), "application/json"))


def _predictions(body: bytes, count: int) -> tuple[list[msgspec.Raw] | None, str]:
    """Returns one prediction for every instance, or what is wrong with the answer."""
    try:
        predictions = _parse(body).predictions
    except ValueError as error:
        return None, str(error)
    if predictions is None or len(predictions) != count:
        return None, "size of prediction is not equal to the size of instances"
    return predictions, ""


def _parse(body: bytes) -> Prediction:
    """Raises ValueError for what is no JSON, or nested too deeply."""
    try:
        return msgspec.json.decode(body, type=Prediction)
    except RecursionError as error:
        raise ValueError(str(error)) from None
