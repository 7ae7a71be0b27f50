"""Where vLLM is installed beside a GPU, it is what runs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

API_SERVER = "import json, sys; print(json.dumps(sys.argv[1:]))"


@pytest.mark.parametrize("words", [["serve", "/m", "--port", "1"], ["--model", "/m", "--port", "1"]])
def test_vllm_gets_the_flags_as_its_api_server_takes_them(tmp_path, words):
    package = tmp_path / "vllm" / "entrypoints" / "openai"
    package.mkdir(parents=True)
    for folder in (package, *package.parents[:2]):
        (folder / "__init__.py").touch()
    (package / "api_server.py").write_text(API_SERVER)
    device = tmp_path / "nvidia0"
    device.touch()
    start = f"from isvc.pods.llmserver import program; program._GPUS = ({str(device)!r},); program.main({words!r})"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    ran = subprocess.run([sys.executable, "-c", start], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == '["--model", "/m", "--port", "1"]'
