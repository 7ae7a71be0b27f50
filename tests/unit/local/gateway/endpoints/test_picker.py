"""The endpoint picker: queue, KV cache, prefix affinity, and servers that do not answer."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.endpoints.picker import Figures, Picker
from isvc.local.gateway.endpoints.pools import Member, members
from isvc.local.gateway.endpoints.prefixes import SeenPrefixes, blocks

FIRST, SECOND = Member("a", Endpoint("127.0.0.1", 1)), Member("b", Endpoint("127.0.0.1", 2))


def metrics(waiting: int = 0, running: int = 0, cache: float = 0) -> bytes:
    labels = '{engine="0",model_name="m"}'
    return (
        f"# HELP vllm:num_requests_waiting Requests.\nvllm:num_requests_waiting{labels} {waiting}.0\n"
        f"vllm:num_requests_running{labels} {running}.0\nvllm:kv_cache_usage_perc{labels} {cache}\n"
    ).encode()


class Servers:
    """Two servers whose metrics a test sets; None for one that does not answer."""

    def __init__(self, first: bytes | None = b"", second: bytes | None = b"") -> None:
        self.metrics = {FIRST.endpoint: first, SECOND.endpoint: second}
        self.running: Counter[Endpoint] = Counter()
        self.picker = Picker(self.fetch, self.running.__getitem__)

    async def fetch(self, endpoint: Endpoint) -> bytes:
        found = self.metrics[endpoint]
        if found is None:
            raise OSError("refused")
        return found

    async def pick(self, body: bytes = b"{}") -> Member:
        return (await self.picker.order([FIRST, SECOND], body))[0]


def chat(question: str, system: str = "You are a helpful assistant. " * 20) -> bytes:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    return json.dumps({"model": "m", "messages": messages}).encode()


def test_metrics_are_read_under_vllms_names():
    assert Figures.parse(metrics(3, 2, 0.25)) == Figures(3, 2, 0.25)
    assert Figures.parse(b"nothing of interest") == Figures()


@pytest.mark.parametrize(
    ("first", "second"),
    [(metrics(running=3), metrics()), (metrics(waiting=1), metrics()), (metrics(cache=0.5), metrics(cache=0.1))],
    ids=["running", "waiting", "cache"],
)
async def test_the_less_busy_server_is_picked(first, second):
    assert await Servers(first, second).pick() == SECOND


async def test_requests_count_before_the_metrics_show_them():
    servers = Servers()
    servers.running[FIRST.endpoint] = 1
    assert await servers.pick() == SECOND


async def test_the_server_that_has_seen_the_prefix_is_picked_again():
    servers = Servers()
    picked = await servers.pick(chat("What is the capital of France?"))
    for number in range(20):
        assert await servers.pick(chat(f"Another question, number {number}")) == picked


async def test_other_prompts_are_spread():
    servers = Servers()
    picked = {(await servers.pick(chat("?", system=f"Conversation {number}. " * 20))).uid for number in range(40)}
    assert picked == {"a", "b"}


async def test_a_full_server_is_spared_whatever_it_has_seen():
    servers = Servers()
    picked = await servers.pick(chat("?"))
    for full in (metrics(waiting=5), metrics(cache=0.9)):
        fresh = Servers(*(full if member == picked else metrics() for member in (FIRST, SECOND)))
        fresh.picker._recall(picked).seen.add(blocks(chat("?")))
        assert await fresh.pick(chat("?")) != picked


async def test_a_server_that_does_not_answer_comes_last():
    assert await Servers(None, metrics(running=3, cache=0.7)).pick() == SECOND


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff\x00", b'{"prompt": 3}', b'{"messages": {"a": []}}'])
async def test_bodies_without_a_prompt_are_no_obstacle(body):
    assert await Servers().pick(body) in (FIRST, SECOND)


def test_equal_beginnings_have_equal_blocks_and_models_do_not_mix():
    one, two = blocks(chat("One?")), blocks(chat("Two, and more?"))
    assert one[:8] == two[:8]
    other_model = json.loads(chat("One?")) | {"model": "adapter"}
    assert not set(one) & set(blocks(json.dumps(other_model).encode()))
    assert len(blocks(json.dumps({"prompt": "x" * 10**6}).encode())) == 256


def test_old_prefixes_are_forgotten():
    seen = SeenPrefixes()
    seen.add([1, 2, 3])
    assert seen.share([1, 2, 4, 5]) == 0.5
    seen.add(range(10, 40_000))
    assert seen.share([1, 2, 3]) == 0


def pod(name: str, *, ready: bool = True, role: str = "both") -> dict:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": {"app": "llm", "llm-d.ai/role": role},
            "annotations": {"local.isvc.dev/ports": '{"8000": 20001}'},
        },
        "status": {"podIP": "127.0.0.1", "conditions": [condition]},
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"selector": {"matchLabels": {"app": "llm"}}, "targetPorts": [{"number": 8000}]},
        {"selector": {"app": "llm"}, "targetPortNumber": 8000},
    ],
    ids=["v1", "v1alpha2"],
)
def test_members_of_a_pool(spec):
    pods = [pod("starting", ready=False), pod("reader", role="prefill"), pod("serving")]
    assert members(pods, {"spec": spec}) == [Member("serving", Endpoint("127.0.0.1", 20001))]
    assert members(pods, {"spec": {**spec, "selector": {}}}) == []
