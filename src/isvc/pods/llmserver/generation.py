"""Runs the sequences of a request: one for each prompt and each of its `n` answers, together as far as there is room.

llama.cpp could do several at once by itself, but counts the tokens of one alone; here every sequence is a request to
it, waits its turn in the scheduler, and is cancelled by closing its connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from isvc.pods.llmserver.errors import ApiError, EngineFailed
from isvc.pods.llmserver.llama.engine import Engine
from isvc.pods.llmserver.llama.scheduler import Scheduler
from isvc.pods.llmserver.metrics import Metrics
from isvc.pods.llmserver.openai.responses import Usage, assemble

Json = dict[str, Any]

_PENDING_PARTS = 64  # of a client that reads slowly


@dataclass(frozen=True, slots=True)
class Run:
    """One sequence: what llama.cpp is asked for, and the LoRA adapter that it needs."""

    path: str
    body: Json
    adapter: str = ""


@dataclass(slots=True)
class Part:
    """Something of the sequence at this index: a choice as llama.cpp has it, or what it used in the end."""

    index: int
    choice: Json = field(default_factory=dict)
    usage: Usage | None = None


class Generator:
    def __init__(self, engine: Engine, scheduler: Scheduler, metrics: Metrics) -> None:
        self._engine = engine
        self._scheduler = scheduler
        self._metrics = metrics

    async def whole(self, runs: Sequence[Run]) -> tuple[list[Json], list[Usage]]:
        """Returns the choices of all sequences and what each used."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._whole(run)) for run in runs]
        except* ApiError as errors:
            raise errors.exceptions[0] from None
        answers = [task.result() for task in tasks]
        return [choice for choice, _ in answers], [usage for _, usage in answers]

    async def parts(self, runs: Sequence[Run]) -> AsyncGenerator[Part]:
        """Yields the parts of all sequences as they come. Closing the iterator cancels what still runs."""
        pending: asyncio.Queue[Part | Exception | None] = asyncio.Queue(_PENDING_PARTS)
        tasks = [asyncio.create_task(self._pump(index, run, pending)) for index, run in enumerate(runs)]
        try:
            unfinished = len(tasks)
            while unfinished:
                part = await pending.get()
                if part is None:
                    unfinished -= 1
                elif isinstance(part, Exception):
                    raise part
                else:
                    yield part
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _pump(self, index: int, run: Run, pending: asyncio.Queue[Part | Exception | None]) -> None:
        try:
            async with aclosing(self._parts(index, run)) as parts:
                async for part in parts:
                    await pending.put(part)
            await pending.put(None)
        except Exception as error:  # whoever reads the parts is the one to know
            await pending.put(error)

    async def _whole(self, run: Run) -> tuple[Json, Usage]:
        """Reads a stream, too: llama.cpp goes on with a request that is not one when nobody waits for it any more."""
        choices, usage = [], Usage()
        async with aclosing(self._parts(0, run)) as parts:
            async for part in parts:
                usage = part.usage or usage
                if part.choice:
                    choices.append(part.choice)
        return assemble(choices), usage

    async def _parts(self, index: int, run: Run) -> AsyncGenerator[Part]:
        begin = time.monotonic()
        last: float | None = None
        usage, ending = Usage(), dict[str, Any]()
        body = {**run.body, "stream_options": {"include_usage": True}}
        async with self._scheduler.sequence(run.adapter):
            self._metrics.queued.observe(time.monotonic() - begin)
            async with aclosing(self._engine.stream(run.path, body)) as events:
                async for event in events:
                    now = time.monotonic()
                    if last is None:
                        self._metrics.first_token.observe(now - begin)
                    else:
                        self._metrics.between_tokens.observe(now - last)
                    last = now
                    if event.get("usage"):
                        usage = Usage.of(event)
                    for choice in event.get("choices") or ():
                        ending = choice
                        yield Part(index, choice)
        if not ending.get("finish_reason"):
            raise EngineFailed("The model ended before its answer did.")
        seconds = time.monotonic() - begin
        self._metrics.observe_answer(ending["finish_reason"], usage.prompt, usage.cached, usage.generated, seconds)
        yield Part(index, usage=usage)
