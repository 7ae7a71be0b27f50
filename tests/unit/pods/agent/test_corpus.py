"""The agent answers and logs as KServe's own does, on requests whose answers were recorded from it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from tests.unit.pods.agent.play import RECORDED, corpus, play

COMMAND = [sys.executable, "-m", "isvc.pods.agent", "--host=127.0.0.1"]
ANSWERS: dict[str, Any] = json.loads(RECORDED.read_text())
CASES = {case["name"]: case for case in corpus()}


def test_every_case_is_recorded_or_differs_on_purpose() -> None:
    assert [name for name, case in CASES.items() if "differs" not in case] == list(ANSWERS)


@pytest.mark.parametrize("name", list(ANSWERS))
async def test_answers_as_recorded(name: str) -> None:
    assert await play(CASES[name], COMMAND) == ANSWERS[name]


async def test_a_batch_that_fails_has_the_status_of_its_failure() -> None:
    failed = await play(CASES["a batch that fails"], COMMAND)
    assert [answer["status"] for answer in failed["answers"]] == [503]
    assert json.loads(failed["answers"][0]["body"]["message"]) == {"error": "failed"}
    too_few = await play(CASES["a batch with too few predictions"], COMMAND)
    assert [answer["status"] for answer in too_few["answers"]] == [502]


async def test_batched_answers_are_logged() -> None:
    played = await play(CASES["batched and logged"], COMMAND)
    assert [event["headers"]["ce-type"].rpartition(".")[2] for event in played["events"]] == ["request", "response"]
    assert played["events"][1]["body"]["predictions"] == [1]
