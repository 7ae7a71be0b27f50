"""What decisions lack is found out: no more than that, no oftener than it changes, and never twice at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.engine.gatherer import _MOST_REMEMBERED, Gatherer
from isvc.engine.needs import Answers, DryRun, Need, Needs, ServerVersion, Stored
from isvc.kube.errors import Forbidden, NotFound, ServiceUnavailable
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Resource

ACCOUNT, KEYS, TOKENS = Stored(SERVICE_ACCOUNTS, "a", "ns"), Stored(SECRETS, "keys", "ns"), Stored(SECRETS, "t", "ns")
SETTING = Stored(CONFIG_MAPS, "setting", "ns", max_age=30.0, max_absence=1.0)


class Source:
    """A cluster that counts what it is asked, and has no more to do with one at a time than it must."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.asked: list[str] = []
        self.fails: Exception | None = None
        self.busy = self.most_busy = 0

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        await self._answer(f"get {name}")
        if name not in self.objects:
            raise NotFound(name)
        return self.objects[name]

    async def create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        assert dry_run
        await self._answer("dry run")
        return obj

    async def server_version(self) -> tuple[str, str]:
        await self._answer("version")
        return "1", "35"

    async def _answer(self, asked: str) -> None:
        self.asked.append(asked)
        self.busy += 1
        self.most_busy = max(self.busy, self.most_busy)
        await asyncio.sleep(0)
        self.busy -= 1
        if self.fails:
            raise self.fails


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def gatherer(source: Source, clock: ManualClock) -> Gatherer:
    return Gatherer(source, clock)


async def find_out(gatherer: Gatherer, need: Need[Any]) -> Any:
    answers = gatherer.answers()
    return await gatherer.gather(lambda: answers[need], answers)


async def test_a_decision_is_made_once_everything_it_asks_for_is_known(gatherer, source) -> None:
    source.objects = {"a": {"secrets": ["keys", "t"]}, "keys": {"key": 1}}
    answers, tries = gatherer.answers(), 0

    def decide() -> list[Object | None]:
        nonlocal tries
        tries += 1
        account = answers[ACCOUNT]
        assert account is not None
        answers.expect(KEYS, TOKENS)
        return [answers[KEYS], answers[TOKENS]]

    assert await gatherer.gather(decide, answers) == [{"key": 1}, None]
    assert (tries, source.asked, source.most_busy) == (3, ["get a", "get keys", "get t"], 2)


def test_what_is_missing_is_named_together_and_once() -> None:
    answers = Answers({KEYS: None})
    with pytest.raises(Needs) as missing:
        answers.expect(ACCOUNT, KEYS, TOKENS, ACCOUNT)
    assert missing.value.needs == (ACCOUNT, TOKENS)


async def test_each_decision_reads_afresh_and_its_answers_do_not_change_meanwhile(gatherer, source) -> None:
    source.objects = {"keys": {"key": 1}}
    answers = gatherer.answers()
    assert await gatherer.gather(lambda: answers[KEYS], answers) == {"key": 1}
    source.objects = {"keys": {"key": 2}}
    assert answers[KEYS] == {"key": 1}
    assert await find_out(gatherer, KEYS) == {"key": 2}


async def test_an_answer_is_remembered_as_long_as_it_lasts_and_absence_for_shorter(gatherer, source, clock) -> None:
    assert await find_out(gatherer, SETTING) is None
    clock.advance(0.5)
    source.objects = {"setting": {"data": {}}}
    assert await find_out(gatherer, SETTING) is None
    clock.advance(0.5)
    assert await find_out(gatherer, SETTING) == {"data": {}}
    clock.advance(29)
    assert await find_out(gatherer, SETTING) == {"data": {}}
    assert source.asked == ["get setting"] * 2
    clock.advance(1)
    await find_out(gatherer, SETTING)
    assert len(source.asked) == 3


async def test_the_version_is_asked_for_once(gatherer, source) -> None:
    for _ in range(3):
        assert await find_out(gatherer, ServerVersion()) == ("1", "35")
    assert source.asked == ["version"]


async def test_the_same_dry_run_is_asked_for_once_at_a_time_and_consent_lasts(gatherer, source) -> None:
    questions = [DryRun(CONFIG_MAPS, 7, {"metadata": {"name": str(number)}}) for number in range(5)]
    source.fails = Forbidden("exceeded quota")
    refused = await asyncio.gather(*(find_out(gatherer, question) for question in questions))
    assert [error.message for error in refused] == ["exceeded quota"] * 5
    assert len(source.asked) == 1
    source.fails = None
    assert await find_out(gatherer, questions[0]) is None, "what was refused is asked again"
    assert await find_out(gatherer, questions[1]) is None
    assert len(source.asked) == 2


async def test_a_cluster_that_does_not_answer_leaves_nothing_decided(gatherer, source) -> None:
    source.fails = ServiceUnavailable("later")
    with pytest.raises(ServiceUnavailable):
        await find_out(gatherer, SETTING)
    source.fails, source.objects = None, {"setting": {}}
    assert await find_out(gatherer, SETTING) == {}


async def test_what_is_remembered_is_bounded(gatherer) -> None:
    for number in range(_MOST_REMEMBERED + 10):
        await find_out(gatherer, DryRun(CONFIG_MAPS, number, {}))
    assert len(gatherer._remembered) == _MOST_REMEMBERED
