"""The models of the examples."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from isvc.local.examples import LLM, llm_file, make_adapter, missing_models, place_llm


@pytest.mark.parametrize("parent", [None, "/dev/shm"])
def test_the_language_model_is_linked_and_not_copied(parent):
    source = llm_file()
    assert source is not None
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        place_llm(Path(folder))
        assert os.path.samefile(source, Path(folder) / LLM / "model.gguf")
        make_adapter(Path(folder))
        assert LLM not in missing_models(Path(folder))
