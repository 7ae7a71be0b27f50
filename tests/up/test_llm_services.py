"""The examples of LLMInferenceServices on `isvc up`: chat, LoRA, one that sleeps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from tests.up.machine import DEADLINE, Machine, until

if TYPE_CHECKING:
    import openai

QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]


def apply(here: Machine, example: str, name: str) -> openai.OpenAI:
    """A client of the example, once it is ready."""
    here.apply(here.example(f"{example}.yaml"))
    return client_of(here, name)


def client_of(here: Machine, name: str) -> openai.OpenAI:
    """A client of a service, at its status.url as it stands, once it is ready."""
    import openai

    ready = here.kubectl("wait", "--for=condition=Ready", f"llmisvc/{name}", f"--timeout={DEADLINE:.0f}s", check=False)
    assert "condition met" in ready, here.kubectl("describe", "llmisvc,pods")
    url = here.get("llmisvc", name)["status"]["url"]
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120)


def graph_of(here: Machine, name: str) -> openai.OpenAI:
    """A client of a graph whose one step is the LLM."""
    import openai

    nodes = {"root": {"routerType": "Sequence", "steps": [{"serviceName": name}]}}
    policies = {"isvc.dev/step-policies": '{"root/0": {"retries": 1, "timeoutSeconds": 100}}'}
    graph = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "InferenceGraph",
        "metadata": {"name": "chat", "annotations": policies},
        "spec": {"nodes": nodes},
    }
    here.apply(graph)
    here.kubectl("wait", "--for=condition=Ready", "ig/chat", f"--timeout={DEADLINE:.0f}s")
    url = here.get("ig", "chat")["status"]["url"]
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120)


def remove(here: Machine, name: str) -> None:
    here.kubectl("delete", "llmisvc", name, "--timeout=60s")


def test_a_chat_streams_token_by_token(here):
    import openai

    with apply(here, "llm", "smollm2") as llm:
        asked: dict[str, Any] = {"model": "smollm2", "messages": QUESTION, "temperature": 0, "max_tokens": 60}
        answer = llm.chat.completions.create(**asked)
        assert "Paris" in answer.choices[0].message.content
        assert answer.usage is not None
        assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
        parts = list(llm.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
        texts = [part.choices[0].delta.content or "" for part in parts if part.choices]
        assert len(texts) == parts[-1].usage.completion_tokens + 1  # the first only names the role
        assert "".join(texts) == answer.choices[0].message.content
        counted = llm.completions.create(
            model="smollm2", prompt="1, 2, 3, 4,", temperature=0, max_tokens=20, stop=["7"]
        )
        assert counted.choices[0].text == " 5, 6, "
        assert len(llm.embeddings.create(model="smollm2", input=["a", "b"]).data) == 2
        assert {card.id for card in llm.models.list()} == {"smollm2", f"publishers/{here.namespace}/models/smollm2"}
        with pytest.raises(openai.NotFoundError, match="`other` does not exist"):
            llm.chat.completions.create(**asked | {"model": "other"})
    with graph_of(here, "smollm2") as llm:
        streamed = [part.choices[0].delta.content or "" for part in llm.chat.completions.create(**asked, stream=True)]
        assert streamed == texts
    remove(here, "smollm2")


def test_an_llm_sleeps_and_a_request_wakes_it(here):
    example = here.example("scale-to-zero-llm.yaml").replace("ooldownPeriod: 6", "ooldownPeriod: 1")
    here.apply(example)
    servers = "app.kubernetes.io/name=dozing-llm,kserve.io/component=workload"

    def sleeps() -> bool:
        conditions = here.get("llmisvc", "dozing-llm")["status"]["conditions"]
        ready = next(each for each in conditions if each["type"] == "Ready")
        return ready.get("reason") == "Asleep" and here.get("pods", labels=servers)["items"] == []

    with client_of(here, "dozing-llm") as llm, ThreadPoolExecutor(3) as clients:
        until(sleeps, "that it sleeps")
        asked: dict[str, Any] = {"model": "dozing-smollm2", "messages": QUESTION, "temperature": 0, "max_tokens": 3}
        streamed = clients.submit(lambda: list(llm.chat.completions.create(**asked, stream=True)))
        answers = list(clients.map(lambda _: llm.chat.completions.create(**asked), range(2)))
        assert [answer.usage.completion_tokens for answer in answers] == [3, 3]
        text = "".join(part.choices[0].delta.content or "" for part in streamed.result() if part.choices)
        assert text == answers[0].choices[0].message.content
        until(sleeps, "that it sleeps again")
    about = f"involvedObject.uid={here.get('llmisvc', 'dozing-llm')['metadata']['uid']}"
    told = here.kubectl("get", "events", f"--field-selector={about}", "-o=jsonpath={.items[*].reason}").split()
    assert "LLMInferenceServiceReady" in told
    assert "LLMInferenceServiceNotReady" not in told
    remove(here, "dozing-llm")


def test_an_adapter_answers_under_its_own_name(here):
    with apply(here, "llm-lora", "smollm2-lora") as llm:
        names = {card.id: card.parent for card in llm.models.list()}  # type: ignore[attr-defined]
        assert names["style"] == "smollm2"
        answers = [
            llm.chat.completions.create(model=name, messages=QUESTION, temperature=0, max_tokens=5)  # type: ignore[arg-type]
            for name in ("smollm2", "style", "smollm2")
        ]
        texts = [answer.choices[0].message.content for answer in answers]
        assert texts[0] == texts[2] != texts[1]
    remove(here, "smollm2-lora")
