"""Which file of a folder is the model, and what is said where there is none."""

from __future__ import annotations

import pytest
from tests.llm import smollm
from tests.unit.pods.llmserver.gguf_files import head

from isvc.pods.llmserver.errors import ServerError
from isvc.pods.llmserver.llama.gguf import read_header
from isvc.pods.llmserver.llama.model_files import find_adapter, find_model


def test_the_head_of_a_real_model():
    header = read_header(smollm())
    assert (header.architecture, header.kind, header.embeds_only) == ("llama", "model", False)


def test_a_model_that_pools_is_one_for_embeddings(tmp_path):
    assert read_header(head(tmp_path / "e.gguf", pooling=2)).embeds_only


def test_a_folder_serves_its_first_model_and_neither_adapters_nor_image_encoders(tmp_path, caplog):
    head(tmp_path / "a-lora.gguf", "adapter")
    head(tmp_path / "a-mmproj.gguf", "mmproj")
    (tmp_path / "deep").mkdir()
    model = head(tmp_path / "deep" / "model.gguf")
    assert find_model(str(tmp_path)) == model
    assert find_adapter(tmp_path) == tmp_path / "a-lora.gguf"
    head(tmp_path / "b.gguf")
    assert find_model(str(tmp_path)) == tmp_path / "b.gguf"
    assert "holds 2 models; serving b.gguf" in caplog.text


def test_a_split_model_is_loaded_by_its_first_part(tmp_path):
    parts = [head(tmp_path / f"m-0000{number}-of-00002.gguf") for number in (1, 2)]
    assert find_model(str(tmp_path)) == parts[0]
    assert find_model(str(parts[1])) == parts[0]
    parts[1].unlink()
    with pytest.raises(ServerError, match=r"m-00002-of-00002\.gguf is missing"):
        find_model(str(tmp_path))


def test_other_formats_are_named(tmp_path):
    weights = tmp_path / "model.safetensors"
    weights.touch()
    for where in (tmp_path, weights):
        with pytest.raises(ServerError, match=r"llama\.cpp needs GGUF, and .* safetensors"):
            find_model(str(where))


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + b"\xff" * 100, b"PK\x03\x04 a zip file"])
def test_a_file_that_is_no_gguf_is_named(tmp_path, content):
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(ServerError, match=r"m\.gguf is no"):
        find_model(str(tmp_path))


def test_nothing_at_all(tmp_path):
    with pytest.raises(ServerError, match="no GGUF file"):
        find_model(str(tmp_path))
    with pytest.raises(ServerError, match="neither a file nor a folder"):
        find_model(str(tmp_path / "absent"))
    with pytest.raises(ServerError, match="neither a file nor a folder"):
        find_adapter(tmp_path / "absent")
    with pytest.raises(ServerError, match="no LoRA adapter"):
        find_adapter(head(tmp_path / "model.gguf"))
