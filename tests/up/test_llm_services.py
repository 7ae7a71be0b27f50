"""The examples of LLMInferenceServices on `isvc up`: chat, replicas with prefix affinity, LoRA, prefill and decode."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from tests.unit.pods.llmserver.gguf_files import adapter
from tests.up.machine import DEADLINE, EXAMPLES, Machine

if TYPE_CHECKING:
    import openai

QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]


@pytest.fixture(scope="module")
def here(here: Machine) -> Machine:
    (here.claim / "smollm2-lora").mkdir()
    adapter(here.claim / "smollm2-lora" / "style.gguf")
    return here


def apply(here: Machine, example: str, name: str) -> openai.OpenAI:
    """A client of the example, at its status.url as it stands, once it is ready."""
    import openai

    here.kubectl("apply", "-f", f"examples/{example}.yaml")
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
    port = here.get("ig", "chat")["status"]["url"].rpartition(":")[2]
    url = f"http://localhost:{port}/serving/{here.namespace}/chat/v1"
    return openai.OpenAI(base_url=url, api_key="none", max_retries=0, timeout=120)


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


def figures(here: Machine, name: str, metric: str) -> dict[str, float]:
    """A metric of each of a service's model servers, by pod."""
    selector = f"app.kubernetes.io/name={name},kserve.io/component=workload"
    found = {}
    for pod in here.get("pods", labels=selector)["items"]:
        port = json.loads(pod["metadata"]["annotations"]["local.isvc.dev/ports"])["8000"]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            values = re.findall(rf"^{metric}{{[^}}]*}} (\S+)", answer.read().decode(), re.MULTILINE)
        found[pod["metadata"]["name"]] = sum(map(float, values))
    return found


def conversation(topic: str, question: str) -> list[Any]:
    return [
        {"role": "system", "content": f"You know everything about {topic}, and nothing else. " * 20},
        {"role": "user", "content": question},
    ]


def test_requests_that_begin_alike_go_to_the_same_of_two_replicas(here):
    with apply(here, "llm-replicas", "smollm2-twice") as llm:

        def ask(topic: str, question: str, **more: Any) -> Any:
            messages = conversation(topic, question)
            return llm.chat.completions.create(model="smollm2", messages=messages, max_tokens=4, **more)

        first = ask("Paris", "Where is it?", stream=True, extra_body={"ignore_eos": True, "max_tokens": 200})
        next(first)
        ask("mushrooms", "Where are they?")  # while the one server is busy with Paris
        assert len(list(first)) > 100
        for number in range(4):
            ask("Paris", f"Question {number}?")
            ask("mushrooms", f"Question {number}?")
    assert list(figures(here, "smollm2-twice", "vllm:request_success_total").values()) == [5, 5]
    looked_up = figures(here, "smollm2-twice", "vllm:prefix_cache_queries_total")
    hits = figures(here, "smollm2-twice", "vllm:prefix_cache_hits_total")
    assert len(hits) == 2
    assert all(hits[pod] > 0.7 * looked_up[pod] for pod in hits), (hits, looked_up)  # all but the first of each
    remove(here, "smollm2-twice")


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


def test_prefill_and_decode_run_as_one_and_say_so(here):
    with apply(here, "llm-prefill", "smollm2-apart") as llm:
        answer = llm.completions.create(model="smollm2", prompt="The capital of France is", temperature=0, max_tokens=1)
        assert answer.choices[0].text == " Paris"
    pool = here.kubectl(
        "get", "inferencepools.inference.networking.x-k8s.io", "smollm2-apart-inference-pool", "-o=yaml"
    )
    sidecar = here.kubectl("logs", "deploy/smollm2-apart-kserve", "-c", "llm-d-routing-sidecar")
    for said in (" ".join(pool.split()), sidecar):
        assert "prefill and decode run as one" in said
    remove(here, "smollm2-apart")


def test_of_a_group_of_pods_the_leader_runs_alone_and_says_so(here):
    """A model that would be spread over two nodes."""
    manifest = yaml.safe_load((EXAMPLES / "llm.yaml").read_text())
    manifest["metadata"]["name"] = "spread"
    manifest["spec"] |= {"parallelism": {"data": 2, "dataLocal": 1}, "worker": {"containers": [{"name": "main"}]}}
    here.apply(manifest)
    here.kubectl("wait", "--for=condition=Ready", "llmisvc/spread", f"--timeout={DEADLINE:.0f}s")
    assert "runs alone" in json.dumps(here.get("lws", "spread-kserve-mn")["status"])
    asked = json.dumps({"model": "smollm2", "prompt": "The capital of France is", "temperature": 0, "max_tokens": 1})
    url = here.get("llmisvc", "spread")["status"]["url"]
    assert " Paris" in here.run("curl", "-sS", f"{url}/v1/completions", "-d", asked)
    remove(here, "spread")
