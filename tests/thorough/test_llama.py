"""llama.cpp that dies, hangs, or loses its server: it costs a reload and no more, and nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.llm import LLMServer, smollm
from tests.unit.pods.llmserver.test_engine import LONG, SETTINGS
from tests.waiting import until, wait_until

from isvc.pods.llmserver.errors import EngineFailed, Unavailable
from isvc.pods.llmserver.llama.engine import Engine

SHORT = {"prompt": "The capital of France is", "max_tokens": 1, "temperature": 0}


async def test_llama_is_started_again_when_it_dies() -> None:
    engine = Engine(SETTINGS)
    await engine.start()

    async def killed() -> None:
        async with aclosing(engine.stream("/v1/completions", LONG)) as events:
            async for _ in events:
                assert engine._process is not None
                os.kill(engine._process.pid, signal.SIGKILL)

    keeper = asyncio.create_task(engine.keep_running())
    with pytest.raises(EngineFailed):
        await killed()
    await until(lambda: not engine.ready, "the death is noticed")
    with pytest.raises(Unavailable):
        await engine.post("/v1/completions", SHORT)
    await until(lambda: engine.ready, "the model is loaded again")
    assert (await engine.post("/v1/completions", SHORT))["choices"][0]["text"] == " Paris"
    await engine.stop()
    await keeper


async def test_llama_is_started_again_when_it_is_stuck() -> None:
    engine = Engine(SETTINGS, check_after=3)
    await engine.start()
    process = engine._process
    assert process is not None
    keeper = asyncio.create_task(engine.keep_running())
    os.kill(process.pid, signal.SIGSTOP)
    await until(lambda: engine._process is not process and engine.ready, "another process answers")
    assert (await engine.post("/v1/completions", SHORT))["choices"][0]["text"] == " Paris"
    await engine.stop()
    await keeper


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def test_llama_ends_with_the_server_however_it_ends(tmp_path):
    killed = LLMServer(tmp_path / "killed", str(smollm())).wait_ready()
    (engine,) = children(killed.process.pid)
    killed.process.kill()
    killed.process.wait()
    wait_until(lambda: not Path(f"/proc/{engine}").exists(), "llama.cpp has ended")
    early = LLMServer(tmp_path / "early", str(smollm()))
    (engine,) = wait_until(lambda: children(early.process.pid), "llama.cpp is being started")
    early.process.send_signal(signal.SIGTERM)
    assert early.process.wait(60) == 0
    assert not Path(f"/proc/{engine}").exists()
