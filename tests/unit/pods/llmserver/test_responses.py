"""Answers are put together from the parts of a stream."""

from __future__ import annotations

from isvc.pods.llmserver.openai.responses import Usage, assemble, chat_choice, total_usage


def delta(**fields) -> dict:
    return {"index": 0, "finish_reason": None, "delta": fields}


def call(index: int, arguments: str, **fields) -> dict:
    return delta(tool_calls=[{"index": index, "function": {"arguments": arguments}, **fields}])


def test_tool_calls_are_put_together():
    choice = assemble(
        [
            delta(role="assistant", content=None),
            delta(
                tool_calls=[{"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{"}}]
            ),
            call(0, "}"),
            delta(tool_calls=[{"index": 1, "id": "b", "type": "function", "function": {"name": "g", "arguments": ""}}]),
            call(1, "[1]"),
            {"index": 0, "finish_reason": "tool_calls", "delta": {}},
        ]
    )
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "g", "arguments": "[1]"}},
        ],
    }


def test_thoughts_are_kept_apart_from_the_answer():
    parts = [
        delta(role="assistant"),
        delta(reasoning_content="Hm"),
        delta(reasoning_content="m."),
        delta(content="Yes"),
    ]
    message = assemble(parts)["message"]
    assert message == {"role": "assistant", "reasoning_content": "Hmm.", "content": "Yes"}


def test_the_first_part_has_an_empty_content():
    assert chat_choice(delta(role="assistant", content=None), 1, None)["delta"] == {"role": "assistant", "content": ""}


def test_a_prompt_with_several_answers_counts_once():
    usage = total_usage([Usage(10, 0, 3), Usage(10, 9, 4), Usage(20, 5, 1), Usage(20, 19, 1)], 2)
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (30, 9, 39)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 5}
