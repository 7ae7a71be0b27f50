"""The program as a process: HTTPS, a chat template, its end, and what it says when it cannot start."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.llm import LLMServer, smollm
from tests.waiting import wait_until

from isvc.wire.x509.issue import issue_authority, issue_serving


@pytest.fixture
def server(tmp_path):
    now = datetime.now(UTC)
    authority = issue_authority("tests", now)
    pair = issue_serving(authority, ["127.0.0.1"], now)
    for name, content in (("ca", authority.certificate), ("crt", pair.certificate), ("key", pair.key)):
        (tmp_path / name).write_bytes(content)
    server = LLMServer(
        tmp_path / "log",
        *("--model", str(smollm().parent), "--model_name=smol", "--max-model-len=1024"),
        *("--chat-template", "{{ messages[0].content }}"),
        *("--ssl-certfile", str(tmp_path / "crt"), "--ssl-keyfile", str(tmp_path / "key"), "--shutdown-timeout=60"),
        authority=tmp_path / "ca",
    )
    yield server.wait_ready()
    server.stop()


def test_https_a_chat_template_and_an_end_that_waits_for_answers(server):
    import httpx2
    import openai

    hello = {"messages": [{"role": "user", "content": "hello there"}]}
    assert json.loads(server.post("/tokenize", json.dumps(hello).encode())[1])["count"] == 2
    http = httpx2.Client(verify=server.tls)
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", http_client=http) as client:
        endless = {"ignore_eos": True}
        stream = client.completions.create(model="smol", prompt="One", max_tokens=100, stream=True, extra_body=endless)
        parts = iter(stream)
        next(parts)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses(server.port), "no new connections are taken")
        endings = [part.choices[0].finish_reason for part in parts]
    assert endings[-1] == "length"
    assert len(endings) > 50
    assert server.process.wait(60) == 0


def refuses(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) != 0


def run(*flags: str, message: Path) -> tuple[int, str]:
    environment = {"TERMINATION_MESSAGE_PATH": str(message), "PATH": ""}
    command = [sys.executable, "-m", "isvc.pods.llmserver", *flags]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout + ended.stderr


def test_what_keeps_it_from_starting_is_one_sentence(tmp_path):
    message = tmp_path / "termination-log"
    message.touch()
    (tmp_path / "model.safetensors").touch()
    status, output = run("--model", str(tmp_path), "--port=0", message=message)
    assert status == 1
    assert message.read_text() == (
        f"llama.cpp needs GGUF, and {tmp_path} holds only safetensors: use a GGUF build of the model"
    )
    assert "Traceback" not in output
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        status, _ = run("--model", str(smollm()), "--host=127.0.0.1", f"--port={port}", message=message)
    assert status == 1
    assert message.read_text() == f"cannot listen on port {port}: Address already in use"


def test_the_version_is_one_that_start_scripts_can_compare(tmp_path):
    status, output = run("--version", message=tmp_path / "none")
    assert status == 0
    assert all(part.isdigit() for part in output.strip().split("."))
