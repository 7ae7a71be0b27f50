"""Chats and completions: a request into runs of llama.cpp, their results into one answer or a stream of parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from isvc.pods.llmserver.catalogue import Catalogue
from isvc.pods.llmserver.errors import ApiError
from isvc.pods.llmserver.generation import Generator, Part, Run
from isvc.pods.llmserver.openai.protocol import ChatRequest, CompletionRequest, Sampling, inputs
from isvc.pods.llmserver.openai.responses import Envelope, Usage, assemble, chat_choice, text_choice, total_usage
from isvc.pods.llmserver.openai.responses_api import Response
from isvc.pods.llmserver.openai.tool_calls import required_call

Json = dict[str, Any]
_PATIENCE = 30.0  # seconds for an event to be taken


class EventStream:
    """Server-sent events to one client, which is cut off when it does not read them.

    A sequence keeps its place in llama.cpp until its last event is taken; clients that ask and do not read would keep
    everybody else from theirs.
    """

    def __init__(self, request: web.Request, patience: float = _PATIENCE) -> None:
        self._request = request
        self._patience = patience
        self.response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})

    async def open(self) -> None:
        await self.response.prepare(self._request)

    async def send(self, body: dict[str, Any], event: str = "") -> None:
        named = f"event: {event}\n".encode() if event else b""
        await self._write(named + b"data: " + orjson.dumps(body) + b"\n\n")

    async def close(self) -> None:
        await self._write(b"data: [DONE]\n\n")
        await self.response.write_eof()

    async def _write(self, event: bytes) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await self.response.write(event)
        except TimeoutError:
            if self._request.transport is not None:
                self._request.transport.abort()
            raise ConnectionResetError("the client does not read its stream") from None


@dataclass(frozen=True, slots=True)
class Job:
    """One request, ready to run."""

    asked: Sampling
    runs: list[Run]
    envelope: Envelope
    choice: Callable[[Json, int, int], Json | None]
    """Makes ours of llama.cpp's choice, its index and the characters before it; None for a part that is not sent."""

    @property
    def answers(self) -> int:
        return self.asked.n or 1


def chat(asked: ChatRequest, catalogue: Catalogue) -> Job:
    model = catalogue.choose(asked.model)
    body = {**asked.llama(), **model.settings}
    runs = [Run("/v1/chat/completions", _with_seed(body, i), model.adapter) for i in range(asked.n or 1)]
    call = required_call(asked.tools, asked.tool_choice)

    def make_choice(choice: Json, index: int, _: int) -> Json | None:
        ours = chat_choice(choice, index, asked.top_logprobs)
        return ours if call is None else call.translate(ours, index)

    return Job(asked, runs, Envelope.new("chat.completion", model.name), make_choice)


def completion(asked: CompletionRequest, catalogue: Catalogue) -> Job:
    model = catalogue.choose(asked.model)
    body = {**asked.llama(), **model.settings}
    runs = [
        Run("/v1/completions", {**_with_seed(body, i), "prompt": prompt}, model.adapter)
        for prompt in inputs(asked.prompt, "prompt")
        for i in range(asked.n or 1)
    ]
    return Job(
        asked,
        runs,
        Envelope.new("text_completion", model.name),
        lambda choice, index, before: text_choice(choice, index, asked.logprobs, before),
    )


async def answer(job: Job, generator: Generator, request: web.Request) -> web.StreamResponse:
    if job.asked.stream:
        return await _stream(job, generator, request)
    found, usages = await generator.whole(job.runs)
    choices = [ours for index, choice in enumerate(found) if (ours := job.choice(choice, index, 0)) is not None]
    body = job.envelope.whole(choices, total_usage(usages, job.answers))
    return web.Response(body=orjson.dumps(body), content_type="application/json")


async def _stream(job: Job, generator: Generator, request: web.Request) -> web.StreamResponse:
    """Sends the status only with the first part, so that a refusal still gets a status of its own."""
    stream = EventStream(request)
    lengths, usages = [0] * len(job.runs), [Usage()] * len(job.runs)

    async def send(part: Part) -> None:
        if part.usage:
            usages[part.index] = part.usage
        if part.choice:
            choice = job.choice(part.choice, part.index, lengths[part.index])
            if choice is not None:
                lengths[part.index] += len(choice.get("text") or "")
                await stream.send(job.envelope.part([choice]))

    async with aclosing(generator.parts(job.runs)) as parts:
        first = await anext(parts)
        await stream.open()
        try:
            await send(first)
            async for part in parts:
                await send(part)
            if job.asked.include_usage:
                await stream.send(job.envelope.part([], total_usage(usages, job.answers)))
        except ApiError as error:
            await stream.send(error.body())
    await stream.close()
    return stream.response


async def respond(job: Job, generator: Generator, request: web.Request) -> web.StreamResponse:
    """Answers a chat as the Responses API does."""
    response = Response(job.envelope.model)
    if not job.asked.stream:
        (found,), usages = await generator.whole(job.runs)
        body = response.whole(job.choice(found, 0, 0) or found, total_usage(usages, 1))
        return web.Response(body=orjson.dumps(body), content_type="application/json")
    stream, sent, usage = EventStream(request), [], Usage()
    async with aclosing(generator.parts(job.runs)) as parts:
        first = await anext(parts)
        await stream.open()
        for event in response.opening():
            await stream.send(event, event["type"])
        try:
            async for part in _after(first, parts):
                usage = part.usage or usage
                if part.choice and (choice := job.choice(part.choice, 0, 0)) is not None:
                    sent.append(choice)
                    if piece := choice["delta"].get("content"):
                        await stream.send(response.piece(piece), "response.output_text.delta")
            for event in response.closing(assemble(sent), total_usage([usage], 1)):
                await stream.send(event, event["type"])
        except ApiError as error:
            await stream.send(response.event("error", **error.body()["error"]), "error")
    await stream.close()
    return stream.response


async def _after(first: Part, others: AsyncGenerator[Part]) -> AsyncGenerator[Part]:
    yield first
    async for other in others:
        yield other


def _with_seed(body: Json, number: int) -> Json:
    """Returns the body for one of n answers; each has a seed of its own, or they would all be the same."""
    return {**body, "seed": (body["seed"] + number) % 2**32} if "seed" in body else body
