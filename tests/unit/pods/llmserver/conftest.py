"""One server with a real model for each worker, and OpenAI's client of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tests.llm import LLMServer, smollm
from tests.unit.pods.llmserver.questions import KEY

if TYPE_CHECKING:
    import openai


@pytest.fixture(scope="session")
def server(tmp_path_factory) -> Iterator[LLMServer]:
    folder = tmp_path_factory.mktemp("llm")
    server = LLMServer(
        folder / "log",
        *("serve", str(smollm()), "--served-model-name", "smol", "publishers/default/models/smol"),
        *("--max-model-len=2048", "--max-num-seqs=2", f"--api-key={KEY}", "--dtype", "bfloat16"),
    )
    yield server.wait_ready()
    server.stop()


@pytest.fixture(scope="session")
def client(server) -> Iterator[openai.OpenAI]:
    import openai

    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0) as client:
        yield client
