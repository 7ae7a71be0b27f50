"""llama.cpp as a child process: cancellation reaches it, and it says what it cannot load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from tests.llm import smollm
from tests.waiting import until

from isvc.pods.llmserver.errors import ServerError
from isvc.pods.llmserver.llama.engine import Engine

SETTINGS = {
    "model": str(smollm()),
    "sequences": 2,
    "context": 1024,
    "batch": 256,
    "threads": 1,
    "prompt_cache_mib": 0,
    "embeds_only": False,
    "chat_template": None,
    "loras": [],
}
LONG = {"prompt": "Once upon a time", "max_tokens": 1000, "ignore_eos": True}


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    engine = Engine(SETTINGS)
    await engine.start()
    yield engine
    await engine.stop()


async def test_closing_a_stream_ends_the_generation(engine):
    async def busy() -> list[dict]:
        return [slot for slot in await engine.get("/slots") if slot["is_processing"]]

    async def idle() -> bool:
        return not await busy()

    async with aclosing(engine.stream("/v1/completions", LONG)) as events:
        await anext(events)
        assert len(await busy()) == 1
    await until(idle, "llama.cpp has stopped generating")
    assert all(slot.get("n_prompt_tokens", 0) < LONG["max_tokens"] for slot in await engine.get("/slots"))


async def test_a_damaged_model_is_a_sentence(tmp_path):
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(smollm().read_bytes()[:100_000])
    with pytest.raises(ServerError, match=r"llama\.cpp cannot load .*damaged\.gguf"):
        await Engine({**SETTINGS, "model": str(damaged)}).start()
