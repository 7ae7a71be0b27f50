"""The router answers as KServe's own does, on graphs and requests whose answers were recorded from it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.unit.pods.router.play import RECORDED, corpus, play
from tests.web_servers import serving

from isvc.pods.router.app import Router, compile_patterns
from isvc.pods.router.graph import decode

ANSWERS: dict[str, list[dict[str, Any]]] = json.loads(RECORDED.read_text())


@asynccontextmanager
async def _router(graph: str, propagate: str | None) -> AsyncIterator[int]:
    router = Router(decode(graph), () if propagate is None else compile_patterns(propagate))
    async with serving(router.application()) as port:
        yield port


def test_every_graph_has_recorded_answers() -> None:
    assert [case["name"] for case in corpus()] == list(ANSWERS)


@pytest.mark.parametrize("case", corpus(), ids=lambda case: case["name"])
async def test_answers_as_recorded(case: dict[str, Any]) -> None:
    answers = await play(case, _router)
    for answer, recorded in zip(answers, ANSWERS[case["name"]], strict=True):
        if case.get("ends_early"):  # which of the other services were asked by then is a matter of luck
            del answer["asked"], recorded["asked"]
        assert answer == recorded
