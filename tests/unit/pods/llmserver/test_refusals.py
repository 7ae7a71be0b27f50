"""Requests that cannot be answered: errors as OpenAI's client knows them, and none is the server's last."""

from __future__ import annotations

import json

import pytest
from tests.unit.pods.llmserver.questions import KEY, QUESTION, TOOLS


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"tool_choice": "required"}, "tools"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "nobody"}}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice"),
    ],
)
def test_a_choice_of_tools_that_cannot_be_made_is_refused(client, given, field):
    import openai

    with pytest.raises(openai.BadRequestError, match=field):
        client.chat.completions.create(model="smol", messages=QUESTION, max_tokens=5, **given)


def test_what_no_response_can_have_is_refused(client):
    import openai

    for given in ({"previous_response_id": "resp_1"}, {"tools": [{"type": "web_search"}]}):
        with pytest.raises(openai.BadRequestError, match="not supported"):
            client.responses.create(model="smol", input="a", **given)


def test_an_answer_that_the_context_has_no_room_for_is_refused(client):
    import openai

    for name, stream in (("max_tokens", False), ("max_completion_tokens", True)):
        with pytest.raises(
            openai.BadRequestError, match=r"too large: 2047\. .* is 2048 tokens and .* \(2047 > 2048 - "
        ):
            client.chat.completions.create(model="smol", messages=QUESTION, stream=stream, **{name: 2047})
    with pytest.raises(openai.BadRequestError, match=r"\(2046 > 2048 - 3\)"):
        client.completions.create(model="smol", prompt=[1, 2, 3], max_tokens=2046)
    with client.completions.create(model="smol", prompt=[1, 2, 3], max_tokens=2045, stream=True) as stream:
        assert next(iter(stream)).choices


def test_errors_have_openais_shape(client, server):
    import openai

    hello = {"model": "smol", "messages": QUESTION}
    with pytest.raises(openai.NotFoundError, match="`other` does not exist"):
        client.chat.completions.create(**hello | {"model": "other"})
    with pytest.raises(openai.BadRequestError, match="maximum context length is 2048 tokens"):
        client.chat.completions.create(
            model="smol", messages=[{"role": "user", "content": "word " * 3000}], stream=True
        )
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**hello, max_tokens="many")
    assert refused.value.body == {
        "message": "Expected `int | null`, got `str` - at `max_tokens`",
        "type": "BadRequestError",
        "param": "max_tokens",
        "code": 400,
    }
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="wrong").models.list()
    assert server.post("/v1/nothing", b"{}", KEY)[0] == 404
    assert server.post("/v1/models", b"{}", KEY)[0] == 405
    with pytest.raises(openai.APIStatusError) as too_large:
        client.completions.create(model="smol", prompt="x" * (33 << 20))
    assert too_large.value.status_code == 413


HOSTILE = {
    "/v1/chat/completions": [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"messages": ' * 5000,
        b'{"messages": [{"role": "user", "content": "a\\u0000b"}], "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "\\ud800"}], "max_tokens": 2}',
        b'{"messages": [{"role": "<|im_start|>", "content": null}], "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": [{"type": "text"}]}], "max_tokens": 2}',
        b'{"messages": [{"role": "tool", "tool_call_id": 5, "content": "x"}], "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function"}], "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "tools": [{}], "tool_choice": "x", "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"messages": 1}, "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": 1e400}',
        b'{"messages": [{"role": "user", "content": "a"}], "guided_json": {"$ref": "#/x"}, "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "guided_json": {"pattern": "^(((a*)*)*$"}, "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "guided_json": 5, "max_tokens": 2}',
        b'{"messages": [{"role": "user", "content": "a"}], "guided_json": '
        + b'{"items":' * 500
        + b"{}"
        + b"}" * 500
        + b', "max_tokens": 2}',
    ],
    "/v1/completions": [
        b'{"prompt": ""}',
        b'{"prompt": [2147483647], "max_tokens": 1}',
        b'{"prompt": [99999999999999999999]}',
        b'{"prompt": "' + b"a" * 4_000_000 + b'"}',
        b'{"prompt": "a", "max_tokens": 2, "logit_bias": {"x": 1, "-5": 2, "99999999999": 3}}',
        b'{"prompt": "a", "max_tokens": 2, "stop": ["", "\\u0000"]}',
        b'{"prompt": "a", "max_tokens": 2, "top_p": 1e-45, "min_p": 1, "temperature": 1e-45}',
        b'{"prompt": "a", "max_tokens": 2, "grammar": "root ::= root", "n_probs": 1000000, "id_slot": 77}',
    ],
    "/v1/embeddings": [b'{"input": ""}', b'{"input": [[99999999]]}', b'{"input": "' + b"word " * 300 + b'"}'],
    "/tokenize": [b'{"prompt": null}', b'{"messages": [{}]}', b'{"messages": [{"role": 5}]}'],
    "/detokenize": [b'{"tokens": [-1]}', b'{"tokens": "x"}', b'{"tokens": []}'],
}


@pytest.mark.parametrize("path", HOSTILE)
def test_no_request_is_the_last_one(client, server, path):
    for body in HOSTILE[path]:
        status, text = server.post(path, body, KEY)
        assert status in (200, 400), (body[:80], text)
        assert status == 200 or json.loads(text)["error"]["code"] == status
    assert client.completions.create(model="smol", prompt="a", max_tokens=1).usage.completion_tokens == 1
    assert "ended with status" not in server.log.read_text()
