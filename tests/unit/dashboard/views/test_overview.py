"""Which services a page of the overview shows, in which order and state."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.api.resources import INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
from isvc.dashboard.views.overview import PAGE_SIZE, Question, overview
from isvc.dashboard.views.rows import Row, State, row
from isvc.insight.diagnosis.finding import Finding, Level


def service(name: str, ready: str = "True", namespace: str = "team", **more: Any) -> dict:
    condition = {"type": "Ready", "status": ready, "message": f"{name} says {ready}"}
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-11-16T00:00:00Z", **more},
        "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}},
        "status": {"conditions": [condition], "url": f"http://{name}"},
    }


def shown(*services: dict, **query: str) -> list[str]:
    rows = [row(INFERENCE_SERVICES, each, None) for each in services]
    return [each.place.name for each in overview(rows, Question.of(query)).rows]


@pytest.mark.parametrize(
    ("ready", "findings", "state"),
    [
        ("True", None, State.READY),
        ("False", None, State.BROKEN),
        ("Unknown", None, State.STARTING),
        ("False", [Finding("Starting", "it loads", level=Level.WAITS)], State.STARTING),
        ("Unknown", [Finding("ImagePull", "no image")], State.BROKEN),
    ],
)
def test_the_state_is_the_diagnosis_where_there_is_one(ready, findings, state):
    assert row(INFERENCE_SERVICES, service("a", ready), findings).state is state


def test_the_cause_is_that_of_the_diagnosis_or_else_of_the_status():
    assert row(INFERENCE_SERVICES, service("a", "False"), None).cause == "a says False"
    assert row(INFERENCE_SERVICES, service("a", "False"), [Finding("x", "no image")]).cause == "no image"
    assert row(INFERENCE_SERVICES, service("a"), None).cause == ""


def test_a_spec_that_nobody_has_seen_yet_is_not_ready():
    newer = service("a", generation=2)
    newer["status"]["observedGeneration"] = 1
    assert row(INFERENCE_SERVICES, newer, None).state is State.STARTING


def test_a_stopped_service_is_called_so():
    stopped = service("a", "False", annotations={"serving.kserve.io/stop": "true"})
    assert row(INFERENCE_SERVICES, stopped, None).state is State.STOPPED


def test_what_is_not_ready_comes_first():
    services = [service("b"), service("a"), service("z", "False"), service("y", "Unknown")]
    assert shown(*services) == ["z", "y", "a", "b"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"q": "IRIS"}, ["iris"]),
        ({"q": "not ready"}, ["broken"]),
        ({"q": "team broken"}, ["broken"]),
        ({"namespace": "other"}, ["flowers"]),
        ({"q": "<script>"}, []),
        ({"page": "-1"}, ["broken", "flowers", "iris"]),
        ({"page": "9" * 40}, ["broken", "flowers", "iris"]),
        ({"page": "²"}, ["broken", "flowers", "iris"]),
    ],
)
def test_the_filter(query, names):
    assert shown(service("iris"), service("broken", "False"), service("flowers", namespace="other"), **query) == names


def test_pages_hold_everything_once():
    services = [service(f"s{number:04}") for number in range(2 * PAGE_SIZE + 1)]
    pages = [shown(*services, page=str(number)) for number in (1, 2, 3)]
    assert [len(page) for page in pages] == [PAGE_SIZE, PAGE_SIZE, 1]
    assert [name for page in pages for name in page] == [each["metadata"]["name"] for each in services]
    assert shown(*services, page="99") == pages[2]  # the last there is


def test_an_llm_goes_by_the_name_of_its_model():
    llm = {"metadata": {"name": "chat", "namespace": "team"}, "spec": {"model": {"name": "smol", "uri": "hf://x"}}}
    found: Row = row(LLM_INFERENCE_SERVICES, llm, None)
    assert (found.model, found.place.path) == ("smol", "/services/llmisvc/team/chat")


def test_the_question_survives_a_link():
    question = Question.of({"q": "a b&c", "namespace": "team"})
    assert question.query(3) == "q=a+b%26c&namespace=team&page=3"
