"""vLLM's command line and KServe's names for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from isvc.pods.llmserver.errors import ServerError
from isvc.pods.llmserver.flags import LoraModule, lora_modules, parse, token_count


def test_the_model_is_the_first_word_of_vllm_serve_and_never_a_flags_value():
    options, unknown = parse(["serve", "/models/a", "--tensor-parallel-size", "2", "--served-model-name", "a", "b"])
    assert options.model == "/models/a"
    assert options.names == ("a", "b")
    assert unknown == ["--tensor-parallel-size"]
    options, unknown = parse(["--tensor-parallel-size", "2", "--gpu-memory-utilization=0.9", "--seed", "-1"])
    assert options.model == "/mnt/models"
    assert unknown == ["--tensor-parallel-size", "--gpu-memory-utilization", "--seed"]


def test_the_server_that_tokenizes_alone_is_this_one():
    options, unknown = parse(["launch", "render", "/mnt/models/base", "--port=8000"])
    assert (options.model, options.port, unknown) == ("/mnt/models/base", 8000, [])


def test_kserves_flags_mean_the_same():
    options, unknown = parse(["--model_name=smol", "--model_dir=/mnt/m", "--http_port=8080", "--max_model_len=2K"])
    assert (options.model, options.names, options.port, options.max_model_len) == ("/mnt/m", ("smol",), 8080, 2048)
    assert unknown == []


def test_a_model_without_a_name_is_called_by_its_path():
    assert parse(["--model", "/m/x.gguf"])[0].names == ("/m/x.gguf",)


def test_api_keys_come_from_the_environment_where_no_flag_gives_them(monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "from-environment")
    assert parse([])[0].api_keys == ("from-environment",)
    assert parse(["--api-key", "a", "b"])[0].api_keys == ("a", "b")


@pytest.mark.parametrize(("text", "count"), [("4096", 4096), ("8k", 8000), ("1.5K", 1536), ("auto", None)])
def test_lengths_are_written_as_vllm_writes_them(text, count):
    assert token_count(text) == count


def test_adapters_are_given_as_name_and_path_or_as_json():
    expected = [LoraModule("sql", Path("/l/sql"))]
    assert lora_modules("sql=/l/sql") == expected
    assert lora_modules('{"name": "sql", "path": "/l/sql", "base_model_name": "b"}') == expected
    assert lora_modules('[{"name": "sql", "path": "/l/sql"}]') == expected
    for wrong in ("sql", "{", "[1]", '{"name": "a"}', "[]"):
        with pytest.raises(ServerError, match="NAME=PATH"):
            lora_modules(wrong)
