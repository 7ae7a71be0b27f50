"""Requests are checked before llama.cpp sees them, whatever they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isvc.pods.llmserver.errors import BadRequest
from isvc.pods.llmserver.openai.protocol import ChatRequest, CompletionRequest, EmbeddingRequest, decode, inputs

HELLO = {"messages": [{"role": "user", "content": "hello"}]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
FIELDS = sorted({*ChatRequest.__struct_fields__, *CompletionRequest.__struct_fields__, "best_of", "echo"})


def chat(**fields) -> dict:
    return decode(json.dumps(HELLO | fields).encode(), ChatRequest).llama()


def test_vllms_names_become_llamas():
    body = chat(repetition_penalty=1.1, top_k=-1, stop="\n", max_completion_tokens=7, max_tokens=3, seed=-1)
    assert body["repeat_penalty"] == 1.1
    assert body["top_k"] == 0
    assert body["stop"] == ["\n"]
    assert body["max_tokens"] == 7
    assert body["seed"] == 2**32 - 1


def test_what_is_not_given_is_left_to_the_model():
    assert chat() == HELLO


def test_a_schema_may_be_asked_for_in_four_ways():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    ways: list[dict[str, Any]] = [
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}},
        {"guided_json": schema},
        {"guided_json": json.dumps(schema)},
        {"structured_outputs": {"json": schema}},
    ]
    for way in ways:
        assert chat(**way)["response_format"]["json_schema"]["schema"] == schema
        completion = decode(json.dumps({"prompt": "x"} | way).encode(), CompletionRequest)
        assert completion.llama()["json_schema"] == schema


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": -1}, "temperature"),
        ({"n": 1000}, "n"),
        ({"messages": []}, "messages"),
        ({"messages": [{"content": "no role"}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages"),
        ({"stop_token_ids": [1]}, "stop_token_ids"),
        ({"best_of": 3}, "best_of"),
        ({"structured_outputs": {"regex": "a+"}}, "structured_outputs"),
        ({"guided_json": "{"}, "guided_json"),
        ({"response_format": {"type": "structural_tag"}}, "response_format"),
        ({"guided_json": {"enum": list(range(6000))}}, "response_format"),
        ({"tools": [{"type": "function"}] * 6000}, "tools"),
        ({"stop": ["x"] * 1000}, "stop"),
    ],
)
def test_a_refusal_names_the_field(fields, param):
    with pytest.raises(BadRequest) as refused:
        chat(**fields)
    assert refused.value.param == param


@pytest.mark.parametrize(
    ("value", "expected"),
    [("a", ["a"]), (["a", "b"], ["a", "b"]), ([1, 2], [[1, 2]]), ([[1], [2]], [[1], [2]]), (["a", [1]], ["a", [1]])],
)
def test_inputs_have_four_shapes(value, expected):
    assert inputs(value, "prompt") == expected


@pytest.mark.parametrize("value", [[], [[]], [True], [-1], [None], [["a"]], ["a"] * 2049])
def test_other_inputs_are_refused(value):
    with pytest.raises(BadRequest):
        inputs(value, "input")


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_body_is_worse_than_a_bad_request(body):
    for kind in (ChatRequest, CompletionRequest, EmbeddingRequest):
        try:
            decode(body, kind)
        except BadRequest as error:
            json.dumps(error.body())


@given(st.dictionaries(st.sampled_from(FIELDS), JSON))
def test_no_field_is_worse_than_a_bad_request(fields):
    bodies: list[tuple[type[ChatRequest | CompletionRequest], dict[str, Any]]] = [
        (ChatRequest, HELLO | fields),
        (CompletionRequest, {"prompt": "a"} | fields),
    ]
    for kind, given_fields in bodies:
        try:
            decode(json.dumps(given_fields).encode(), kind).llama()
        except BadRequest as error:
            json.dumps(error.body())
