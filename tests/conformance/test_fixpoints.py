"""Where the reference came to rest, we rest: in every recorded state a reconcile plans exactly what is there.

No server takes part, so all states are checked in seconds; the cases themselves are played in tests/conformance.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.answers import answers
from tests.conformance.recorded import Memory, State, differences, states
from tests.recordings import FOLDER

from isvc.api.resources import INFERENCE_SERVICES
from isvc.controllers.inferenceservice.kind import make_kind
from isvc.engine.apply import Engine
from isvc.engine.outcome import Outcome
from isvc.kube.objects import Object, namespace_of
from isvc.serving.environment import Environment

# Steps after which the reference has not looked yet; we would do the same as it does at the next change.
NOT_LOOKED_AT = {
    "standard-ingress/std-self-heal: autoscaler alone deleted",
    "standard-ingress/std-runtime-namespaced-first: namespaced runtime deleted",
}

# Recordings leave out empty maps and the status of pods, which these depend on.
NOT_RECORDED = re.compile("std-multinode-refused: accepted|std-pod-storage-failure: (succeeded|touched|second)")

STATES = [s for s in states("standard-*") if str(s) not in NOT_LOOKED_AT and not NOT_RECORDED.search(str(s))]
pytestmark = pytest.mark.skipif(not STATES, reason=f"no recorded cases in {FOLDER}")


class NoWrites:
    """A client that was never meant to be asked."""

    field_manager = "isvc"

    async def create(self, resource: Any, obj: Object) -> Object:
        raise AssertionError(f"creates {resource} {obj['metadata']['name']}: {obj}")

    async def update(self, resource: Any, obj: Object, *, dry_run: bool = False) -> Object:
        raise AssertionError(f"updates {resource} {obj['metadata']['name']} to {obj}")

    async def delete(self, resource: Any, name: str, *_: Any, **__: Any) -> Object:
        raise AssertionError(f"deletes {resource} {name}")

    async def find(self, resource: Any, name: str, namespace: str = "") -> Object:
        raise AssertionError(f"reads {resource} {name}")

    async def patch(self, resource: Any, name: str, patch: object, namespace: str = "") -> Object:
        raise AssertionError(f"patches {resource} {name}: {patch}")


@pytest.mark.parametrize("state", STATES, ids=str)
async def test_a_recorded_state_is_left_as_it_is(state: State) -> None:
    memory = Memory(state)
    kind = make_kind(memory, Environment())
    for service in memory.list(INFERENCE_SERVICES):
        observed = kind.observe(service, answers(namespace_of(service)), "2026-01-01T00:00:00Z")
        planned = kind.plan(observed)
        outcome = Outcome()
        if not planned.suspended:
            outcome = await Engine(NoWrites(), memory).apply(observed.raw, planned)
        folded = kind.fold(observed, planned, outcome)
        assert list(differences(state, service, folded.status)) == []
