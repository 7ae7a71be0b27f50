"""What runs for the servers that predict latencies: it is found by their images, and well as soon as it listens."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request

import pytest
from tests.ports import free_port
from tests.waiting import wait_until

from isvc.local.node.programs.images import BUILT_IN, ImageTable
from isvc.serving.llm.shipped.routing import PREDICTOR, TRAINER


@pytest.mark.parametrize(
    ("image", "env"), [(TRAINER, {}), (PREDICTOR, {"PREDICT_PORT": "8001"})], ids=["learn", "tell"]
)
def test_the_servers_say_that_they_are_well(image, env, tmp_path):
    program = ImageTable(tmp_path / "images.yaml").find(image)
    assert program is BUILT_IN["llm-d/llm-d-latency-predictor-*"]
    port = free_port()
    ports = json.dumps({env.get("PREDICT_PORT", "8000"): port})
    with subprocess.Popen(program.command, env={**os.environ, **env, "ISVC_PORTS": ports}) as process:
        try:

            def status(path: str) -> int:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                        return answer.status
                except urllib.error.HTTPError as error:
                    return error.code
                except urllib.error.URLError:
                    return 0

            wait_until(lambda: status("/readyz") == 200, "the server to be well", within=60)
            assert (status("/healthz"), status("/predict")) == (200, 404)
        finally:
            process.kill()
