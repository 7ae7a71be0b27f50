"""A language model on `isvc up`: a stream through the gateway, and a vLLM container as it is written for a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.up.machine import Machine, until

from isvc.local.examples import LLM

if TYPE_CHECKING:
    import openai

QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
START_SCRIPT = """
VLLM_VERSION=$(vllm --version | tail -1)
if [ "$(printf '%s\\n%s\\n' 0.18.0 "$VLLM_VERSION" | sort -V | head -1)" = 0.18.0 ]; then
  SHUTDOWN="--shutdown-timeout 15"
fi
eval "exec vllm serve /mnt/models --served-model-name smol --port 8000 ${SHUTDOWN} $@"
"""


def client(here: Machine, name: str, path: str) -> openai.OpenAI:
    import openai

    base = here.get("isvc", name)["status"]["url"] + path
    return openai.OpenAI(base_url=base, api_key="none", max_retries=0, timeout=120)


def test_the_example_answers_and_streams_token_by_token(here):
    import httpx2
    import openai

    here.apply(here.example("llm-inferenceservice.yaml"))
    here.wait_ready(LLM)
    with client(here, LLM, "/openai/v1") as llm:
        asked: dict[str, Any] = {"model": LLM, "messages": QUESTION, "temperature": 0, "max_tokens": 60}
        answer = llm.chat.completions.create(**asked)
        assert "Paris" in answer.choices[0].message.content
        parts = llm.chat.completions.create(**asked, stream=True, extra_body={"ignore_eos": True})
        texts: list[str] = []
        for part in parts:
            if not texts:
                running = f'vllm:num_requests_running{{engine="0",model_name="{LLM}"}} 1.0'
                assert running in llm.get("../../metrics", cast_to=httpx2.Response).text
            texts.append(part.choices[0].delta.content or "")
        assert len(texts) > 20
        assert "".join(texts).startswith(answer.choices[0].message.content)
        with pytest.raises(openai.NotFoundError, match="`other` does not exist"):
            llm.chat.completions.create(**asked | {"model": "other"})


def test_a_container_of_vllm_runs_with_its_own_start_script(here):
    container = {
        "name": "kserve-container",
        "image": "ghcr.io/llm-d/llm-d-cuda:v0.9.0",
        "command": ["/bin/sh", "-c", START_SCRIPT, "--"],
        "args": ["--max-model-len=1024", "--tensor-parallel-size", "1"],
        "ports": [{"containerPort": 8000}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 8000}, "periodSeconds": 1},
        "env": [{"name": "STORAGE_URI", "value": f"pvc://models/{LLM}"}],
    }
    here.apply(
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": "vllm"},
            "spec": {"predictor": {"containers": [container]}},
        }
    )
    here.wait_ready("vllm")
    with client(here, "vllm", "/v1") as llm:
        assert [card.id for card in llm.models.list()] == ["smol"]
        answer = llm.completions.create(model="smol", prompt="The capital of France is", temperature=0, max_tokens=1)
        assert answer.choices[0].text == " Paris"
    assert "--tensor-parallel-size has no effect" in here.kubectl("logs", "deploy/vllm-predictor")


def test_a_model_that_is_no_gguf_is_named_in_the_status(here):
    (here.claim / "weights").mkdir()
    (here.claim / "weights" / "model.safetensors").touch()
    model = {"modelFormat": {"name": "huggingface"}, "storageUri": "pvc://models/weights"}
    here.apply(
        {
            "apiVersion": "serving.kserve.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": "weights"},
            "spec": {"predictor": {"model": model}},
        }
    )

    def message() -> str:
        return json.dumps(here.get("isvc", "weights").get("status", {}).get("modelStatus", {}))

    until(lambda: "llama.cpp needs GGUF" in message(), "the reason is in the status")
