"""Embeddings: every input is a run of its own."""

from __future__ import annotations

import asyncio
from typing import Any

from isvc.pods.llmserver.catalogue import Catalogue
from isvc.pods.llmserver.errors import ApiError, BadRequest
from isvc.pods.llmserver.llama.engine import Engine
from isvc.pods.llmserver.llama.scheduler import Scheduler
from isvc.pods.llmserver.openai.protocol import EmbeddingRequest, inputs

Json = dict[str, Any]


async def embed(asked: EmbeddingRequest, catalogue: Catalogue, engine: Engine, scheduler: Scheduler) -> Json:
    asked.check()
    model = catalogue.choose(asked.model)
    if catalogue.adapters:
        raise BadRequest("The model does not support the Embeddings API while it is served with LoRA adapters.")

    async def one(text: str | list[int]) -> Json:
        body = {"input": text, "encoding_format": asked.encoding_format or "float"}
        async with scheduler.sequence():
            answer: Json = await engine.post("/v1/embeddings", body)
        return answer

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(text)) for text in inputs(asked.input, "input")]
    except* ApiError as errors:
        raise errors.exceptions[0] from None
    answers = [task.result() for task in tasks]
    tokens = sum(answer["usage"]["prompt_tokens"] for answer in answers)
    data = [
        {"object": "embedding", "index": index, "embedding": answer["data"][0]["embedding"]}
        for index, answer in enumerate(answers)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": model.name, "data": data, "usage": usage}
