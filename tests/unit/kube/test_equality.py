from typing import Any

import pytest

from isvc.kube.equality import changed_fields, covers, equivalent


@pytest.mark.parametrize(
    ("live", "desired"),
    [
        ({"a": 1, "defaulted": 2}, {"a": 1}),
        ({"c": [{"name": "x", "policy": "Always"}]}, {"c": [{"name": "x"}]}),
        ({"resources": {"limits": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "1000m"}}}),
        ({"emptyDir": {"sizeLimit": "1Gi"}}, {"emptyDir": {"sizeLimit": "1024Mi"}}),
        ({}, {"args": [], "labels": {}, "hostNetwork": False, "env": None, "initialDelaySeconds": 0}),
        ({"env": [{"name": "A"}]}, {"env": [{"name": "A", "value": ""}]}),
        ({"target": {"value": "1"}}, {"target": {"value": 1000 * 0.001}}),
    ],
)
def test_what_an_api_server_adds_or_rewrites_is_no_difference(live, desired):
    assert covers(live, desired)


@pytest.mark.parametrize(
    ("live", "desired"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": True}),
        ({"args": ["a", "b"]}, {"args": ["a"]}),
        ({"args": ["a", "b"]}, {"args": ["b", "a"]}),
        ({"args": ["a"]}, {"args": []}),
        ({"env": [{"name": "A", "value": "1"}]}, {"env": [{"name": "A", "value": "1000m"}]}),
        ({"labels": {"limits": "1"}}, {"labels": {"limits": "1.0"}}),
        ({"labels": {}}, {"labels": {"a": ""}}),
        ({}, {"securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False}}),
        ({"a": "x"}, {"a": {"b": 1}}),
        ({"a": {"b": 1}}, {"a": None}),
    ],
)
def test_what_somebody_meant_is_one(live, desired):
    assert not covers(live, desired)


def test_equivalence_goes_both_ways():
    assert equivalent({"a": [], "b": 1, "c": {"d": None}}, {"b": 1})
    assert not equivalent({"a": 1, "b": 1}, {"b": 1})
    assert not equivalent({"copies": {"failed": 0}}, {"copies": {}})
    assert not equivalent({"stopped": False}, {})
    assert not equivalent({"ready": True}, {"ready": 1})
    assert equivalent({"a": 1, "b": {"c": [], "d": 2}}, {"b": {"d": 2}, "a": 1})


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
