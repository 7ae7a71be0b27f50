"""The server as OpenAI's own client sees it: one process with a real model."""

from __future__ import annotations

import json
import math
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.unit.pods.llmserver.questions import KEY, QUESTION, TOOLS
from tests.waiting import wait_until

LONG = 1800
ENDLESS = {"ignore_eos": True}


def test_a_chat(client):
    answer = client.chat.completions.create(model="smol", messages=QUESTION, temperature=0, max_tokens=20)
    assert "Paris" in answer.choices[0].message.content
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "smol"
    assert answer.usage.prompt_tokens > 20
    assert 1 <= answer.usage.completion_tokens <= 20
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_stream_comes_token_by_token_while_the_model_still_writes(client, server):
    asked = {
        "model": "smol",
        "messages": QUESTION,
        "temperature": 0,
        "max_tokens": 60,
        "extra_body": ENDLESS,
    }
    whole = client.chat.completions.create(**asked)
    texts: list[str] = []
    usage: Any = None
    for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        assert chunk.object == "chat.completion.chunk"
        usage = chunk.usage or usage
        if chunk.choices and chunk.choices[0].delta.content:
            if not texts:
                assert server.metric("vllm:num_requests_running") == 1
                wait_until(lambda: 0 < server.metric("vllm:kv_cache_usage_perc") < 1, "the cache is in use")
            texts.append(chunk.choices[0].delta.content)
    assert len(texts) > 20
    assert "".join(texts) == whole.choices[0].message.content
    assert usage.completion_tokens == whole.usage.completion_tokens == 60


def test_a_stream_without_usage_ends_with_done(server):
    body = {"model": "smol", "prompt": "One two three", "max_tokens": 3, "stream": True}
    status, text = server.post("/v1/completions", json.dumps(body).encode(), KEY)
    assert status == 200
    assert text.endswith("data: [DONE]\n\n")
    assert "usage" not in text


def test_stop_sequences_end_the_text_before_them(client):
    asked = {"model": "smol", "prompt": "The capital of France is", "temperature": 0, "max_tokens": 12}
    text = client.completions.create(**asked).choices[0].text
    assert text.startswith(" Paris")
    stop = text[10:14]
    stopped = client.completions.create(**asked, stop=[stop, "never"])
    assert stopped.choices[0].text == text[: text.index(stop)]
    assert stopped.choices[0].finish_reason == "stop"


def test_several_prompts_and_answers_have_their_own_places(client):
    prompts = ["The capital of France is", "The capital of Italy is"]
    found = client.completions.create(model="smol", prompt=prompts, temperature=0, max_tokens=2, n=2)
    assert [choice.index for choice in found.choices] == [0, 1, 2, 3]
    texts = [choice.text for choice in found.choices]
    assert texts[0] == texts[1] == " Paris."
    assert texts[2] == texts[3] == " Rome."
    assert found.usage.completion_tokens == 8
    assert found.usage.prompt_tokens == 10
    streamed: dict[int, str] = {}
    for part in client.completions.create(model="smol", prompt=prompts, temperature=0, max_tokens=2, stream=True):
        streamed[part.choices[0].index] = streamed.get(part.choices[0].index, "") + part.choices[0].text
    assert streamed == {0: " Paris.", 1: " Rome."}


def test_a_seed_repeats_and_n_answers_differ(client):
    asked = {"model": "smol", "messages": [{"role": "user", "content": "Tell me a story"}], "temperature": 1.0}
    first, second = (
        [
            choice.message.content
            for choice in client.chat.completions.create(**asked, seed=7, n=2, max_tokens=12).choices
        ]
        for _ in range(2)
    )
    assert first == second
    assert first[0] != first[1]


def test_log_probabilities_in_both_shapes(client):
    chat = client.chat.completions.create(
        model="smol", messages=QUESTION, max_tokens=3, temperature=0, logprobs=True, top_logprobs=2
    )
    token = chat.choices[0].logprobs.content[0]
    assert len(token.top_logprobs) == 2
    assert token.logprob == token.top_logprobs[0].logprob <= 0
    text = client.completions.create(model="smol", prompt="One two", max_tokens=3, temperature=0, logprobs=2).choices[0]
    assert "".join(text.logprobs.tokens) == text.text
    assert text.logprobs.text_offset == [0, len(text.logprobs.tokens[0]), len("".join(text.logprobs.tokens[:2]))]
    assert all(len(best) == 2 for best in text.logprobs.top_logprobs)


def test_an_answer_that_fits_a_schema(client):
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    answer = client.chat.completions.create(
        model="smol",
        messages=QUESTION,
        max_tokens=50,
        response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": schema}},
    )
    assert json.loads(answer.choices[0].message.content)["city"] in ("Paris", "Rome")


def test_a_tool_is_called_where_one_is_required(client):
    asked = {"model": "smol", "messages": QUESTION, "max_tokens": 100, "temperature": 0, "tools": TOOLS}
    answer = client.chat.completions.create(**asked, tool_choice="required").choices[0]
    assert answer.finish_reason == "tool_calls"
    any_of_them = answer.message.tool_calls[0].function
    assert any_of_them.name in ("look_up_weather", "send_mail")
    chosen = {"type": "function", "function": {"name": "send_mail"}}
    events = list(client.chat.completions.create(**asked, tool_choice=chosen, stream=True))
    deltas = [event.choices[0].delta for event in events if event.choices]
    (streamed,) = [call.function for delta in deltas for call in delta.tool_calls or ()]
    assert streamed.name == "send_mail"
    for function in (any_of_them, streamed):
        (value,) = json.loads(function.arguments).values()
        assert value in ("Paris", "Rome", "alice", "bob")


def test_the_responses_api(client):
    answer = client.responses.create(model="smol", input=QUESTION[0]["content"], temperature=0, max_output_tokens=20)
    assert "Paris" in answer.output_text
    assert (answer.status, answer.usage.total_tokens) == (
        "completed",
        answer.usage.input_tokens + answer.usage.output_tokens,
    )
    talk = [{"role": "user", "content": [{"type": "input_text", "text": QUESTION[0]["content"]}]}]
    cut = client.responses.create(model="smol", instructions="Be brief.", input=talk, max_output_tokens=1)
    assert (cut.status, cut.incomplete_details.reason) == ("incomplete", "max_output_tokens")


def test_responses_come_as_events(client):
    asked = {"model": "smol", "input": QUESTION[0]["content"], "temperature": 0, "max_output_tokens": 20}
    with client.responses.stream(**asked) as events:
        seen = list(events)
        final = events.get_final_response()
    pieces = [event.delta for event in seen if event.type == "response.output_text.delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == final.output_text == client.responses.create(**asked).output_text
    assert [event.sequence_number for event in seen if event.type == "response.created"] == [0]


def test_responses_call_tools_and_fit_schemas(client):
    flat = [{"type": "function", **each["function"]} for each in TOOLS]
    asked = {"model": "smol", "input": "Weather in Rome?", "max_output_tokens": 100}
    (call,) = client.responses.create(**asked, tools=flat, tool_choice="required").output
    assert (call.type, call.name in ("look_up_weather", "send_mail")) == ("function_call", True)
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]}
    wanted = {"format": {"type": "json_schema", "name": "city", "schema": schema}}
    assert json.loads(client.responses.create(**asked, text=wanted).output_text)["city"] in ("Paris", "Rome")


def test_embeddings_are_near_for_what_is_alike(client):
    texts = ["A cat sits on the mat.", "A kitten is sitting on a rug.", "Interest rates rose by two percent."]
    found = client.embeddings.create(model="smol", input=texts)
    cat, kitten, rates = (item.embedding for item in found.data)
    assert [item.index for item in found.data] == [0, 1, 2]
    assert math.isclose(math.hypot(*cat), 1, rel_tol=1e-3)
    assert dot(cat, kitten) > dot(cat, rates)
    again = client.embeddings.create(model="smol", input=texts[::-1])  # with prefixes in the cache
    assert again.data[2].embedding == pytest.approx(cat, abs=1e-3)
    floats = client.embeddings.create(model="smol", input=texts[0], encoding_format="float")
    assert floats.data[0].embedding == pytest.approx(cat, abs=1e-3)
    assert found.usage.prompt_tokens > floats.usage.prompt_tokens > 0


def test_two_requests_run_together_and_a_third_waits(client, server):
    def ask(number: int) -> str:
        text = [{"role": "user", "content": f"Count from {number}"}]
        return client.chat.completions.create(model="smol", messages=text, max_tokens=80, extra_body=ENDLESS).id

    with ThreadPoolExecutor(3) as threads:
        answers = [threads.submit(ask, number) for number in range(3)]
        wait_until(lambda: server.metric("vllm:num_requests_waiting") == 1, "one waits")
        assert server.metric("vllm:num_requests_running") == 2
        assert len({answer.result() for answer in answers}) == 3
    assert server.metric("vllm:num_requests_running") == 0


def test_a_client_that_goes_away_frees_its_place(client, server):
    import openai

    def generated() -> float:
        return server.metric("vllm:generation_tokens_total")

    before = generated()
    asked = {"model": "smol", "messages": QUESTION, "max_tokens": LONG, "extra_body": ENDLESS}
    streams = [client.chat.completions.create(**asked, stream=True) for _ in range(2)]
    for stream in streams:
        next(iter(stream))
    assert server.metric("vllm:num_requests_running") == 2
    for stream in streams:
        stream.close()
    with pytest.raises(openai.APITimeoutError):
        client.with_options(timeout=0.3).chat.completions.create(**asked)
    wait_until(lambda: server.metric("vllm:num_requests_running") == 0, "nothing runs any more")
    assert generated() == before  # none of them came to its end
    assert client.completions.create(model="smol", prompt="a", max_tokens=1).usage.completion_tokens == 1


def test_models_are_listed_by_all_their_names(client):
    assert [card.id for card in client.models.list()] == ["smol", "publishers/default/models/smol"]
    assert client.models.retrieve("publishers/default/models/smol").to_dict()["max_model_len"] == 2048


def test_metrics_have_vllms_names(client, server):
    prompt = f"{time.time()} " + "The quick brown fox jumps over the lazy dog. " * 8
    names = [f"vllm:{name}" for name in ("prompt_tokens_total", "generation_tokens_total", "request_success_total")]
    histograms = ("time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds")
    names += [f"vllm:{name}_count" for name in histograms]
    before = {name: server.metric(name) for name in names}
    hits, queries = (server.metric(f"vllm:prefix_cache_{name}_total") for name in ("hits", "queries"))
    first = client.completions.create(model="smol", prompt=prompt, max_tokens=4, extra_body=ENDLESS)
    second = client.completions.create(model="smol", prompt=prompt, max_tokens=4, extra_body=ENDLESS)
    growth = {name: server.metric(name) - value for name, value in before.items()}
    assert (
        growth[names[0]] == 2 * first.usage.prompt_tokens == server.metric("vllm:prefix_cache_queries_total") - queries
    )
    assert growth[names[1]] == 8
    assert all(growth[name] == 2 for name in names[2:])
    assert server.metric("vllm:prefix_cache_hits_total") - hits >= second.usage.prompt_tokens - 1


def test_tokens_and_back(server):
    status, text = server.post("/tokenize", b'{"model": "smol", "prompt": "hello there", "return_token_strs": true}')
    found = json.loads(text)
    assert (status, found["count"], found["max_model_len"]) == (200, 2, 2048)
    assert found["token_strs"] == ["hello", " there"]
    status, text = server.post("/detokenize", json.dumps({"tokens": found["tokens"]}).encode())
    assert (status, json.loads(text)) == (200, {"prompt": "hello there"})
    assert server.post("/detokenize", b'{"tokens": [99999999]}')[0] == 400
    assert json.loads(server.post("/tokenize", json.dumps({"messages": QUESTION}).encode())[1])["count"] > 20


def test_health_version_and_kserves_paths(server):
    for path in ("/health", "/ping", "/version", "/", "/v2/health/ready", "/v2/health/live"):
        assert server.get(path) is not None
    body = json.dumps({"messages": QUESTION, "max_tokens": 2}).encode()
    assert server.post("/openai/v1/chat/completions", body, KEY)[0] == 200


def test_flags_of_vllm_that_mean_nothing_here_are_named_once(server):
    assert server.log.read_text().count("--dtype has no effect") == 1
    assert KEY not in server.log.read_text()


def dot(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
