"""What the recorded answers cannot show: chances, circles, and steps that are let go."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import orjson
import pytest

from isvc.pods.router.execution import Answer, RoutingError, run
from isvc.pods.router.graph import Graph, Step, decode
from isvc.pods.router.metrics import Metrics


def _root(kind: str, *steps: dict[str, Any]) -> Graph:
    return decode(orjson.dumps({"nodes": {"root": {"routerType": kind, "steps": steps}}}).decode())


async def _name(step: Step, body: bytes, **_: object) -> Answer:
    return Answer(orjson.dumps({"from": step.service_url}), 200)


async def test_a_splitter_follows_its_weights() -> None:
    graph = _root("Splitter", {"serviceUrl": "a", "weight": 80}, {"serviceUrl": "b", "weight": 20})
    answers = Counter([(await run(graph, b"{}", _name, Metrics())).body for _ in range(2000)])
    assert set(answers) == {b'{"from":"a"}', b'{"from":"b"}'}
    assert 0.14 < answers[b'{"from":"b"}'] / 2000 < 0.26  # seven standard deviations to either side


async def test_a_circle_of_nodes_is_an_error() -> None:
    graph = _root("Sequence", {"nodeName": "root"})
    with pytest.raises(RoutingError, match="circle"):
        await run(graph, b"{}", _name, Metrics())


@pytest.mark.parametrize("kind", ["Ensemble", "Sequence"])
async def test_nodes_that_lead_to_several_others_each_come_to_an_end(kind: str) -> None:
    """Forty nodes, each of which leads to the next twice: more steps than anybody waits for, without a circle."""
    calls = 0

    async def call(step: Step, body: bytes, **_: object) -> Answer:
        nonlocal calls
        calls += 1
        return Answer(b"{}", 200)

    nodes = {f"n{number}": {"routerType": kind, "steps": [{"nodeName": f"n{number + 1}"}] * 2} for number in range(40)}
    nodes |= {"root": nodes["n0"], "n40": {"routerType": "Sequence", "steps": [{"serviceUrl": "a"}]}}
    with pytest.raises(RoutingError, match="more than 10000 steps"):
        await run(decode(orjson.dumps({"nodes": nodes}).decode()), b"{}", call, Metrics())
    assert calls <= 10_000


async def test_a_circle_of_ensembles_is_an_error() -> None:
    graph = _root("Ensemble", {"nodeName": "root"}, {"nodeName": "root"})
    with pytest.raises(RoutingError, match="circle"):
        await run(graph, b"{}", _name, Metrics())


async def test_a_document_too_deep_for_a_condition_is_an_error() -> None:
    graph = _root("Switch", {"serviceUrl": "a", "condition": "@dig:x"})
    with pytest.raises(RoutingError, match="too deeply"):
        await run(graph, b"[" * 900 + b"]" * 900, _name, Metrics())


async def test_an_ensemble_lets_go_of_the_others_when_one_fails() -> None:
    cancelled = asyncio.Event()
    waiting = asyncio.Event()

    async def call(step: Step, body: bytes, **_: object) -> Answer:
        if step.service_url == "broken":
            await waiting.wait()
            raise RoutingError("broken")
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    graph = _root("Ensemble", {"serviceUrl": "slow"}, {"serviceUrl": "broken"})
    with pytest.raises(RoutingError, match="broken"):
        await run(graph, b"{}", call, Metrics())
    assert cancelled.is_set()


@pytest.mark.parametrize(
    ("kind", "step"),
    [("Ensemble", {"serviceUrl": "a"}), ("Sequence", {"serviceUrl": "a", "mapPredictionsToInstances": True})],
)
async def test_what_is_nested_too_deeply_is_an_error(kind: str, step: dict[str, Any]) -> None:
    nested = b'{"predictions":[%s]}' % (b"[" * 300 + b"]" * 300)

    async def call(step: Step, body: bytes, **_: object) -> Answer:
        return Answer(nested, 200)

    with pytest.raises(RoutingError, match="Recursion limit"):
        await run(_root(kind, step), nested, call, Metrics())
