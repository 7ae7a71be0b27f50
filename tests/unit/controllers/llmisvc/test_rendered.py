"""A merged spec is checked by the API server once for all services that differ in nothing but names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS
from isvc.controllers.llmisvc.kind import make_kind
from isvc.controllers.llmisvc.observed import AppliedConfig, Merged
from isvc.controllers.llmisvc.rendered import ask_about, refusal, was_good
from isvc.engine.gatherer import Gatherer
from isvc.engine.needs import Answers
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Hold
from isvc.kube.conditions import find
from isvc.kube.errors import ApiError, BadRequest, Invalid, ServiceUnavailable
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.serving.environment import Environment
from isvc.toolkit.cache.memory import MemoryReader

APPLIED = (AppliedConfig("small", "team", "UserRef"),)


class Server:
    """Counts dry runs, and answers them as a test asks for."""

    def __init__(self) -> None:
        self.asked = 0
        self.refusal: Exception | None = None

    async def create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        assert dry_run
        self.asked += 1
        await asyncio.sleep(0)
        if self.refusal:
            raise self.refusal
        return obj


def service(name: str, **status: Any) -> Object:
    return {"metadata": {"name": name, "namespace": "team", "generation": 1}, "status": status}


def merged(name: str, model: str, **spec: Any) -> Merged:
    labels = {"app": name, "path": f"/team/{name}"}
    return Merged.of({"model": {"uri": f"hf://{model}", "name": model}, "labels": labels, **spec}, APPLIED)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def gatherer(server: Any) -> Gatherer:
    return Gatherer(server, ManualClock())


async def check(gatherer: Gatherer, raw: Object, what: Merged) -> ApiError | None:
    """What is said to a merged spec."""
    answers = gatherer.answers()
    return await gatherer.gather(lambda: answers[ask_about(raw, what)], answers)


async def test_one_answer_serves_all_that_differ_in_names_even_at_once(gatherer, server) -> None:
    names = ("one", "two", "three")
    await asyncio.gather(*(check(gatherer, service(name), merged(name, f"lab/{name}-7b")) for name in names))
    assert server.asked == 1
    assert await check(gatherer, service("four"), merged("four", "lab/four")) is None
    assert server.asked == 1


async def test_another_spec_is_another_question(gatherer, server) -> None:
    await check(gatherer, service("one"), merged("one", "lab/a"))
    await check(gatherer, service("one"), merged("one", "lab/a", replicas=2))
    assert server.asked == 2


@pytest.mark.parametrize("model", ["lab//a", "lab/../a", "a b", "a" * 300])
async def test_a_name_that_may_be_refused_somewhere_is_checked_by_itself(gatherer, server, model) -> None:
    await check(gatherer, service("one"), merged("one", "lab/a"))
    await check(gatherer, service("one"), merged("one", model))
    assert server.asked == 2


def test_what_was_good_before_a_restart_is_not_asked_again() -> None:
    good = service(
        "one",
        observedGeneration=1,
        appliedConfigs=[{"name": "small", "namespace": "team", "source": "UserRef"}],
        conditions=[{"type": "PresetsCombined", "status": "True"}],
    )
    assert was_good(good, merged("one", "lab/a"))
    assert not was_good(service("one"), merged("one", "lab/a"))


def test_a_refusal_names_the_configurations_and_the_fields() -> None:
    causes = [{"field": "spec.replicas", "message": "must not be negative"}, {"message": "something else"}]
    error = Invalid("one-validation-x is invalid", details={"causes": causes})
    message = refusal(error, merged("one", "lab/a"))
    assert "[UserRef:team/small]: spec.replicas: must not be negative; something else" in message


async def test_what_was_refused_is_asked_again(gatherer, server) -> None:
    server.refusal = ServiceUnavailable("later")
    assert await check(gatherer, service("one"), merged("one", "lab/a")) is server.refusal
    server.refusal = None
    assert await check(gatherer, service("one"), merged("one", "lab/a")) is None
    assert server.asked == 2


CONFIG = {"metadata": {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"}, "data": {}}
TEMPLATE = {"metadata": {"name": "kserve-config-llm-template", "namespace": "kserve"}, "spec": {}}


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (Invalid("no"), "False", "InvalidRenderedConfig"),
        (BadRequest("expected an object"), "False", "InvalidRenderedConfig"),
        (ServiceUnavailable("later"), "Unknown", "ValidationUnavailable"),
    ],
)
def test_the_condition_tells_what_is_refused_for_good_from_what_nobody_could_say(
    error: ApiError, status: str, reason: str
) -> None:
    objects = [(CONFIG_MAPS, CONFIG), (LLM_INFERENCE_SERVICE_CONFIGS, TEMPLATE)]
    kind = make_kind(MemoryReader(objects), Environment())
    raw = {**service("one"), "spec": {"model": {"uri": "hf://a/b"}}}
    observed = kind.observe(raw, Answers(recall=lambda need: error), "2026-01-01T00:00:00Z")
    planned = kind.plan(observed)
    assert all(isinstance(part.answer, Hold) for part in planned.parts)
    folded = kind.fold(observed, planned, Outcome())
    condition = find(folded.status["conditions"], "PresetsCombined") or {}
    assert (condition["status"], condition["reason"]) == (status, reason)
    assert folded.again
