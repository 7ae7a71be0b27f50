"""Which objects a change of another one brings back."""

from __future__ import annotations

from isvc.api.resources import SERVING_RUNTIMES
from isvc.engine.dependents import Dependents, any_of
from isvc.kube.objects import Key

RUNTIME = Key("ns", "server")
USER, SEEKER, NEW, ELSEWHERE = (Key("ns", name) for name in ("user", "seeker", "new", "elsewhere"))


def test_a_change_concerns_users_seekers_and_those_that_are_being_planned() -> None:
    dependents = Dependents()
    dependents.record(USER, frozenset({(SERVING_RUNTIMES, RUNTIME)}))
    dependents.record(SEEKER, frozenset({any_of(SERVING_RUNTIMES, "ns")}))
    dependents.record(ELSEWHERE, frozenset({any_of(SERVING_RUNTIMES, "other")}))
    dependents.begin(NEW)
    assert dependents.of(SERVING_RUNTIMES, RUNTIME) == [NEW, SEEKER, USER]
    assert dependents.of_any(SERVING_RUNTIMES, "ns") == [NEW, SEEKER], "what goes is still what its users run with"
    dependents.record(NEW, frozenset())
    dependents.record(USER, frozenset())
    assert dependents.of(SERVING_RUNTIMES, RUNTIME) == [SEEKER]
