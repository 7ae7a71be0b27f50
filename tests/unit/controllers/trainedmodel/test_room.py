"""A model that goes or moves leaves room to those beside it."""

from __future__ import annotations

from typing import Any

from isvc.controllers.trainedmodel.watches import _made_room


def model(service: str) -> dict[str, Any]:
    return {"metadata": {"name": "m", "namespace": "ns"}, "spec": {"inferenceService": service}}


def test_room_is_made_by_going_and_by_moving() -> None:
    assert _made_room(model("a"), None)
    assert _made_room(model("a"), model("b"))
    assert not _made_room(None, model("a"))
    assert not _made_room(model("a"), model("a"))
