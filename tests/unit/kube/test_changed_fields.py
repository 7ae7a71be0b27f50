from __future__ import annotations

from typing import Any

import pytest

from isvc.kube.changed_fields import changed_fields


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, ["a.c"]),
        ({"a": 1}, {"b": 1}, ["a", "b"]),
        ({"a": None}, {}, []),
        ({"a": True}, {"a": 1}, ["a"]),
        ({"l": [{"name": "x", "v": 1}]}, {"l": [{"name": "x", "v": 2}, {"name": "y"}]}, ["l[x].v", "l[y]"]),
        ({"l": [{"name": "x"}, {"name": "y"}]}, {"l": [{"name": "y"}, {"name": "x"}]}, []),
        ({"l": [1, 2]}, {"l": [2, 1]}, ["l"]),
        ({"l": [{"name": "x"}]}, {"l": ["x"]}, ["l"]),
    ],
)
def test_fields_are_named_by_their_path(before: Any, after: Any, expected: list[str]) -> None:
    assert [*changed_fields(before, after)] == expected
