"""Ready has one meaning, for commands, pages and controllers alike."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.kube.readiness import is_observed, is_ready, readiness


def service(ready: str | None, generation: int | None = 2, observed: int | None = 2, **words: str) -> dict[str, Any]:
    status: dict[str, Any] = {} if observed is None else {"observedGeneration": observed}
    if ready is not None:
        status["conditions"] = [{"type": "IngressReady", "status": "True"}, {"type": "Ready", "status": ready, **words}]
    return {"metadata": {} if generation is None else {"generation": generation}, "status": status}


@pytest.mark.parametrize(
    "obj", [service("True"), service("True", 2, 3), service("True", None), service("True", 2, None)]
)
def test_an_object_is_ready_when_its_condition_says_so_of_the_spec_it_has_now(obj: dict[str, Any]) -> None:
    assert is_ready(obj)


@pytest.mark.parametrize("obj", [service("False"), service("Unknown"), service(None), {"metadata": {}}, {}])
def test_an_object_is_not_ready_that_says_otherwise_or_nothing(obj: dict[str, Any]) -> None:
    assert not is_ready(obj)
    assert is_observed(obj)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_what_was_said_of_an_earlier_spec_says_nothing_of_this_one(ready: str) -> None:
    edited = service(ready, generation=3, reason="Old", message="of the old spec")
    assert not is_ready(edited)
    assert not is_observed(edited)
    assert (readiness(edited)["status"], readiness(edited)["reason"]) == ("Unknown", "NotReconciled")


def test_the_condition_keeps_its_words() -> None:
    failed = readiness(service("False", reason="Broken", message="no such image"))
    assert (failed["status"], failed["reason"], failed["message"]) == ("False", "Broken", "no such image")
