"""Which statuses give way to other writes."""

from __future__ import annotations

import pytest

from isvc.engine.commit import is_awaited
from isvc.kube.objects import Object


def status(ready: str | None) -> Object:
    return {"conditions": [{"type": "Ready", "status": ready}]} if ready else {}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, "True", True),
        ("Unknown", "True", True),
        ("False", "True", True),
        ("True", "False", True),
        ("True", "Unknown", False),
        ("True", "True", False),
        (None, "False", False),
        (None, None, False),
    ],
)
def test_others_wait_for_what_becomes_ready_and_for_what_no_longer_is(before, after, expected):
    assert is_awaited(status(before), status(after)) is expected
