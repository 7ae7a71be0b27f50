"""What goes out at once, what waits a moment, and which warnings are recorded."""

from __future__ import annotations

from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.controllers.llmisvc.kind import MOMENT, make_kind
from isvc.engine.commit import Commit
from isvc.engine.events import Event
from isvc.engine.kind import Folded
from isvc.engine.pauses import Pauses
from isvc.engine.reporter import LONGEST_TEXT, Reporter, is_urgent
from isvc.kube.objects import Object, deep_copy
from isvc.kube.resource import Resource
from isvc.serving.environment import Environment
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.failure import Unreachable

RAW: Object = {"metadata": {"name": "mine", "namespace": "team"}}
CLASH = Event("Warning", "ModelNameCollision", "another service has the name")


def status(ready: str, generation: int = 1, **conditions: str) -> Object:
    kinds = {"Ready": ready, **conditions}
    return {
        "observedGeneration": generation,
        "conditions": [{"type": kind, "status": value} for kind, value in kinds.items()],
    }


class Server:
    """Keeps the last status that was written, and all events."""

    def __init__(self) -> None:
        self.written: list[Object] = []
        self.events: list[str] = []
        self.hangs_up = False

    async def update(self, resource: Resource, obj: Object, **options: Any) -> Object:
        self.written.append(obj["status"])
        if self.hangs_up:
            raise Unreachable("no answer")
        return obj

    def note(self, *args: Any, **kwargs: Any) -> None:
        """Nobody reads here."""

    def event(self, obj: Object, type: str, reason: str, message: str) -> None:  # noqa: A002
        self.events.append(reason)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def reporter(server: Server, clock: ManualClock) -> Reporter:
    kind = make_kind(MemoryReader(), Environment())
    return Reporter(kind, Commit(server, server), server, Pauses(clock))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "urgent"),
    [
        ({}, status("False"), True),
        (status("False"), status("True"), True),
        (status("False"), status("False", generation=2), True),
        (status("True", MainWorkloadReady="True"), status("True", MainWorkloadReady="False"), True),
        (status("False", MainWorkloadReady="False"), status("False", MainWorkloadReady="True"), False),
        (status("False"), {**status("False"), "url": "http://x"}, False),
    ],
)
def test_only_progress_can_wait(before: Object, after: Object, urgent: bool) -> None:
    assert is_urgent(before, after) is urgent


async def test_progress_is_written_after_a_moment_with_what_came_meanwhile(reporter, server, clock) -> None:
    raw = {**RAW, "status": status("False", A="False", B="False")}
    first = await reporter.publish(raw, Folded(status("False", A="True", B="False")))
    assert first is not None
    assert server.written == []
    clock.advance(MOMENT)
    both = status("False", A="True", B="True")
    assert await reporter.publish(raw, Folded(both)) is None
    assert server.written == [both]


async def test_a_text_that_is_too_long_for_a_status_is_cut(reporter, server) -> None:
    long = {"conditions": [{"type": "Ready", "status": "False", "message": "key" * 300_000}], "replicas": 1}
    await reporter.publish(RAW, Folded(long))
    (written,) = server.written
    assert len(written["conditions"][0]["message"]) == LONGEST_TEXT
    assert written["conditions"][0]["message"].endswith("…")
    assert written["replicas"] == 1
    await reporter.publish({**RAW, "status": written}, Folded(long))
    assert len(server.written) == 1


async def test_becoming_ready_is_written_and_told_at_once(reporter, server) -> None:
    await reporter.publish({**RAW, "status": status("False")}, Folded(status("True")))
    assert len(server.written) == 1
    assert server.events == ["LLMInferenceServiceReady"]


async def test_becoming_ready_is_told_when_the_answer_to_its_write_was_lost(reporter, server) -> None:
    server.hangs_up = True
    with pytest.raises(Unreachable):
        await reporter.publish({**RAW, "status": status("False")}, Folded(status("True")))
    assert server.events == []
    await reporter.publish({**RAW, "status": status("True")}, Folded(status("True")))
    assert server.events == ["LLMInferenceServiceReady"]
    await reporter.publish({**RAW, "status": status("True")}, Folded(status("True")))
    assert server.events == ["LLMInferenceServiceReady"]
    assert len(server.written) == 1


async def test_a_warning_is_told_when_it_comes_up_and_not_again(reporter, server) -> None:
    raw = {**RAW, "status": status("True")}
    await reporter.publish(raw, Folded(status("True")))
    await reporter.publish(raw, Folded(status("True"), (CLASH,)))
    await reporter.publish(raw, Folded(status("True"), (CLASH,)))
    assert server.events == ["ModelNameCollision"]


async def test_after_a_start_an_old_warning_is_no_news(reporter, server) -> None:
    raw = {**RAW, "status": status("True")}
    await reporter.publish(deep_copy(raw), Folded({**status("True"), "addresses": []}, (CLASH,)))
    assert server.events == []
    assert server.written == []
