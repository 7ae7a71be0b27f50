"""Which statuses give way to other writes."""

from __future__ import annotations

import pytest

from isvc.engine.commit import PATIENCE, PATIENCE_OF_READY, patience_of
from isvc.kube.objects import Object


def status(ready: str | None) -> Object:
    return {"conditions": [{"type": "Ready", "status": ready}]} if ready else {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, "True", 0.0),
        ("Unknown", "True", 0.0),
        ("False", "True", 0.0),
        ("True", "False", 0.0),
        ("True", "Unknown", PATIENCE_OF_READY),
        ("True", "True", PATIENCE_OF_READY),
        (None, "False", PATIENCE),
        (None, None, PATIENCE),
    ],
)
def test_others_wait_for_what_becomes_ready_and_for_what_no_longer_is(before, after, expected):
    assert patience_of(status(before), status(after)) == expected
