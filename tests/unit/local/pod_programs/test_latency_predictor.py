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

from isvc.kube.objects import name_of
from isvc.local.node.programs.images import BUILT_IN, ImageTable
from isvc.serving.shipped import shipped_presets


def image_of(server: str) -> str:
    """In the preset that ships."""
    [preset] = [each for each in shipped_presets() if name_of(each) == "kserve-config-llm-scheduler-latency-predictor"]
    containers = preset["spec"]["router"]["scheduler"]["template"]["containers"]
    return next(each["image"] for each in containers if each["name"] == server)


@pytest.mark.parametrize(("server", "env"), [("training-server", {}), ("prediction-server", {"PREDICT_PORT": "8001"})])
def test_the_servers_say_that_they_are_well(server, env, tmp_path):
    program = ImageTable(tmp_path / "images.yaml").find(image_of(server))
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
