"""Questions to the API server that are not asked twice."""

from __future__ import annotations

from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.insight.diagnosis.dry_runs import DryRuns
from isvc.kube.errors import Forbidden
from isvc.kube.resource import PODS

POD = {"metadata": {"name": "a"}}


class Server:
    """Counts what it is asked, and refuses what is called so."""

    field_manager = "test"

    def __init__(self) -> None:
        self.asked = 0

    async def create(self, resource: Any, obj: dict[str, Any], *, dry_run: bool) -> dict[str, Any]:
        assert dry_run
        self.asked += 1
        if obj["metadata"]["name"] == "refused":
            raise Forbidden("exceeded quota")
        return {**obj, "made": self.asked}


async def test_what_was_made_is_remembered_for_a_while_and_for_that_object_alone():
    server: Any = Server()
    clock = ManualClock()
    dry_runs = DryRuns(server, clock, remember=60)
    assert [(await dry_runs.create(PODS, POD))["made"] for _ in range(3)] == [1, 1, 1]
    assert (await dry_runs.create(PODS, {"metadata": {"name": "b"}}))["made"] == 2
    clock.advance(61)
    assert (await dry_runs.create(PODS, POD))["made"] == 3


async def test_what_was_refused_is_asked_again():
    server: Any = Server()
    dry_runs = DryRuns(server, ManualClock(), remember=60)
    for _ in range(2):
        with pytest.raises(Forbidden):
            await dry_runs.create(PODS, {"metadata": {"name": "refused"}})
    assert server.asked == 2


async def test_without_a_time_nothing_is_remembered():
    server: Any = Server()
    dry_runs = DryRuns(server)
    assert [(await dry_runs.create(PODS, POD))["made"] for _ in range(2)] == [1, 2]
