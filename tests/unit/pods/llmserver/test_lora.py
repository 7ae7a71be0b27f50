"""A LoRA adapter is a model of its own beside the one it belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.llm import LLMServer, smollm

from isvc.local.example_adapter import write_adapter

QUESTION: Any = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]


@pytest.fixture
def server(tmp_path) -> Iterator[LLMServer]:
    lora = tmp_path / "noise.gguf"
    write_adapter(lora)
    flags = ("--enable-lora", "--max-lora-rank=8", f"--lora-modules=noise={lora}", "--max-model-len=1024")
    server = LLMServer(tmp_path / "log", str(smollm()), "--served-model-name=smol", *flags)
    yield server.wait_ready()
    server.stop()


def test_an_adapter_is_a_model_of_its_own(server):
    import openai

    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    assert {card.id: card.to_dict()["parent"] for card in client.models.list()} == {"smol": None, "noise": "smol"}

    def ask(model: str) -> str:
        answer = client.chat.completions.create(model=model, messages=QUESTION, temperature=0, max_tokens=12)
        assert answer.model == model
        return str(answer.choices[0].message.content)

    base, noise = ask("smol"), ask("noise")
    assert "Paris" in base
    assert noise != base
    assert [ask("smol"), ask("noise"), ask("smol"), ask("noise")] == [base, noise, base, noise]
    with client.completions.create(model="noise", prompt="One", max_tokens=900, stream=True) as stream:
        next(iter(stream))
        running = 'vllm:lora_requests_info{max_lora="1",running_lora_adapters="noise",waiting_lora_adapters=""}'
        assert running in server.get("/metrics")
    with pytest.raises(openai.BadRequestError, match="while it is served with LoRA adapters"):
        client.embeddings.create(model="smol", input="a")
    client.close()
