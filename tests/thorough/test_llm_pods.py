"""LLMInferenceServices of several pods on `isvc up`: replicas with prefix affinity, prefill and decode, a group."""

from __future__ import annotations

import json
import re
import urllib.request
from typing import Any

import yaml
from tests.up.machine import DEADLINE, EXAMPLES, Machine
from tests.up.test_llm_services import apply, remove


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
