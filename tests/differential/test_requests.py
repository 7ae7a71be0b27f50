"""The embedded API server against a real one: the same requests get the same answers, and watchers see the same.

Runs with --cluster=kube-apiserver only, as it needs both. The requests are random but the same at every run; to look
for more, say how many sequences to try: `DIFFERENTIAL=1000 pytest tests/differential/test_requests.py ...`
"""

from __future__ import annotations

import os
import time
import uuid

import pytest
from hypothesis import HealthCheck, given, note, settings

from tests.differential.kinds import LAST, WIDGETS
from tests.differential.normal import differences, normal
from tests.differential.steps import Player, Step, sequences
from tests.wire import Wire

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def servers(both: tuple[Wire, Wire]) -> tuple[Wire, Wire]:
    """The real server and an embedded one, with the same custom kind installed."""
    for wire in both:
        assert wire.ask("POST", CRDS, WIDGETS)[0] in (201, 409)
        _await_widgets(wire)
    return both


def _await_widgets(wire: Wire) -> None:
    group = WIDGETS["spec"]["group"]
    deadline = time.monotonic() + 60
    while wire.ask("GET", f"/apis/{group}/v1/widgets")[0] != 200:
        assert time.monotonic() < deadline, "the custom kind is not served"
        time.sleep(0.05)


@settings(
    max_examples=int(os.environ.get("DIFFERENTIAL", "60")),
    derandomize="DIFFERENTIAL" not in os.environ,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(steps=sequences(12))
def test_the_same_requests_get_the_same_answers(servers: tuple[Wire, Wire], steps: list[Step]):
    name = f"diff-{uuid.uuid4().hex[:10]}"
    players = [Player(wire, name) for wire in servers]
    for wire in servers:
        made, _ = wire.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert made == 201
    kind = steps[0].kind
    starts = [wire.ask("GET", kind.path(name))[1]["metadata"]["resourceVersion"] for wire in servers]
    for number, step in enumerate(steps):
        real, ours = (player.play(step) for player in players)
        note(f"{number}: {step} -> {real[0]}")
        assert ours[0] == real[0], (step, real[1], ours[1])
        found = differences(normal(real[1]), normal(ours[1]))
        assert not found, (step, found)
    last = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "zz-last"}, **LAST[kind.plural]}
    events = []
    for wire, version in zip(servers, starts, strict=True):
        assert wire.ask("POST", kind.path(name), last)[0] == 201
        events.append(normal(wire.watch(kind.path(name), version, "zz-last")))
    assert not differences(*events)
