"""A first request fits what the model says of its inputs."""

from __future__ import annotations

import pytest

from isvc.insight.operations.signature import v1_sample, v2_sample

ROWS = {"inputs": [{"name": "x", "datatype": "FP64", "shape": [-1, 3]}]}
NAMED = {
    "inputs": [
        {"name": "text", "datatype": "BYTES", "shape": [-1, 1]},
        {"name": "flag", "datatype": "BOOL", "shape": [-1]},
        {"name": "count", "datatype": "INT64", "shape": [-1, 2]},
    ]
}


def test_one_row_of_every_input():
    assert v2_sample(ROWS) == {"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP64", "data": [1.0, 1.0, 1.0]}]}
    assert [each["data"] for each in (v2_sample(NAMED) or {})["inputs"]] == [["text"], [False], [1, 1]]


def test_instances_are_rows():
    assert v1_sample(ROWS) == {"instances": [[1.0, 1.0, 1.0]]}
    assert v1_sample(NAMED) == {"instances": [{"text": ["text"], "flag": False, "count": [1, 1]}]}


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        [],
        "text",
        {"inputs": 3},
        {"inputs": [{"name": "x"}]},
        {"inputs": [{"name": "x", "datatype": "FP32", "shape": "abc"}]},
        {"inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 3, 224, 224]}]},
        {"inputs": []},
    ],
)
def test_what_says_nothing_useful_gives_no_sample(metadata):
    assert v1_sample(metadata) is v2_sample(metadata) is None
