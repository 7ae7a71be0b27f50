"""Lengths of time as Go writes them."""

from __future__ import annotations

import pytest

from isvc.kube.durations import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1h2m3.5s", 3723.5), ("300ms", 0.3), ("2562047h", 2562047 * 3600.0), ("2562048h", None), ("soon", None)],
)
def test_what_a_text_says(text: str, expected: float | None) -> None:
    assert seconds(text) == expected


def test_what_is_endless_is_no_duration() -> None:
    assert seconds("9" * 400 + "h") is None
