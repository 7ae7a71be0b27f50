"""The program as a process: flags, workers, failures and its end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from tests.ports import free_port
from tests.waiting import wait_until

MODEL = """
import os, time
from isvc import Model

class Echo(Model):
    def predict(self, payload, headers):
        if "seconds" in payload:
            open("began", "w").close()
            time.sleep(payload["seconds"])
        return {"predictions": payload["instances"], "pid": os.getpid()}
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "echo.py").write_text(MODEL)
    started = []

    def start(*flags: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "isvc.pods.modelserver", *flags]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def predict(port: int, **body) -> dict:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/models/echo:predict", json.dumps({"instances": [1], **body}).encode()
    )
    deadline = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)
        except urllib.error.URLError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_workers_share_the_port_and_sigterm_lets_running_requests_end(program, tmp_path):
    import threading

    port = free_port()
    process = program(
        "--model_name=echo", "--model_class=echo.py:Echo", f"--http_port={port}", "--workers=2", "--odd=1"
    )
    assert predict(port)["pid"] != process.pid
    answers = []
    slow = threading.Thread(target=lambda: answers.append(predict(port, seconds=1)))
    slow.start()
    wait_until((tmp_path / "began").exists)
    process.send_signal(signal.SIGTERM)
    slow.join(60)
    assert answers[0]["predictions"] == [1]
    assert process.wait(60) == 0


def test_a_port_in_use_is_told(program):
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        process = program("--model_class=echo.py:Echo", f"--http_port={taken.getsockname()[1]}")
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "cannot listen on port" in errors


def test_a_missing_model_is_told(program, tmp_path, monkeypatch):
    message = tmp_path / "termination-log"
    message.touch()
    monkeypatch.setenv("TERMINATION_MESSAGE_PATH", str(message))
    process = program("--framework=sklearn", f"--model_dir={tmp_path / 'nowhere'}", f"--http_port={free_port()}")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "does not exist" in errors
    assert message.read_text().startswith("the model folder")
