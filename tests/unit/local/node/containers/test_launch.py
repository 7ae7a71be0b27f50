from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from isvc.local.node.containers.launch import ContainerServices, PodContext, launch
from isvc.local.node.environment import Sources
from isvc.local.node.processes.process import Reaper
from isvc.local.node.programs.images import BUILT_IN, ImageTable, Program
from isvc.local.node.programs.warm import WarmServers, framework_of
from isvc.toolkit.clock import SystemClock


def launched(tmp_path, spec, program=Program()):  # noqa: B008 - frozen
    node = ContainerServices(
        images=ImageTable(tmp_path / "images.yaml"),
        reaper=Reaper(tmp_path / "reaper"),
        warm=WarmServers(Reaper(tmp_path / "reaper")),
        clock=SystemClock(),
        env={},
    )
    context = PodContext(
        pod={"metadata": {"name": "p"}, "spec": {}},
        folder=tmp_path,
        volumes={"models": tmp_path / "models"},
        sources=Sources(),
        ports={8080: 20001},
        node=node,
        touch=lambda: None,
        event=lambda kind, reason, message: None,
    )
    return launch({"name": "c", "image": "i", **spec}, program, context, tmp_path / "termination-log")


def test_references_are_expanded_once_with_what_the_process_sees(tmp_path):
    env = [{"name": "PORT", "value": "8080"}, {"name": "DIR", "value": "/mnt/models"}, {"name": "A", "value": "$$(B)"}]
    spec = {
        "env": env,
        "command": ["serve", "$(PORT)", "$(A)"],
        "args": ["$(DIR)/m", "$$(PORT)", "$$$$", "$(NONE)"],
        "volumeMounts": [{"name": "models", "mountPath": "/mnt/models"}],
    }
    models = f"{tmp_path}/models"
    assert launched(tmp_path, spec).command == ["serve", "20001", "$(B)", f"{models}/m", "$(PORT)", "$$", "$(NONE)"]
    started = launched(tmp_path, spec, Program(("mine", "{port}", "$(PORT)")))
    assert started.command == ["mine", "20001", "$(PORT)", f"{models}/m", "$(PORT)", "$$", "$(NONE)"]
    assert (started.env["PORT"], started.env["DIR"]) == ("20001", models)


@pytest.mark.parametrize(("cpus", "threads"), [("100m", 1), ("1", 1), (1e30, os.cpu_count()), ("-1", 1)])
def test_threads_follow_the_limit_as_far_as_there_are_cores(tmp_path, cpus, threads):
    started = launched(tmp_path, {"command": ["serve"], "resources": {"limits": {"cpu": cpus}}})
    assert started.env["OMP_NUM_THREADS"] == started.env["OPENBLAS_NUM_THREADS"] == str(threads)


def test_the_last_words_go_where_the_node_reads_them(tmp_path):
    started = launched(tmp_path, {"command": ["sh", "-c", "echo bye > /dev/termination-log"]})
    assert started.command[-1] == f"echo bye > {tmp_path}/termination-log"
    started = launched(tmp_path, {"command": ["sh", "-c", "echo bye > /tmp/end"], "terminationMessagePath": "/tmp/end"})
    assert started.command[-1] == f"echo bye > {tmp_path}/termination-log"
    assert json.loads(started.env["ISVC_MOUNTS"]) == {"/tmp/end": f"{tmp_path}/termination-log"}


LLM_SERVER = Program((sys.executable, "-c", "import sys; print(sys.argv[1:])"), stands_for="vllm")
SCRIPT = """
if [ "$VLLM_NAME" ]; then NAME="--served-model-name $VLLM_NAME"; fi
eval "exec vllm serve /mnt/models --port 8080 ${NAME} $@"
"""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"args": ["--port=8080"]}, ["--port=20001"]),
        ({"command": ["vllm", "serve"], "args": ["--port", "8080"]}, ["serve", "--port", "20001"]),
        ({"command": ["python3", "-m", "vllm.entrypoints.openai.api_server", "--x"], "args": ["y"]}, ["--x", "y"]),
        (
            {
                "command": ["/bin/sh", "-c", SCRIPT, "--"],
                "args": ["--a b", "c"],
                "env": [{"name": "VLLM_NAME", "value": "n"}],
            },
            ["serve", "{models}", "--port", "20001", "--served-model-name", "n", "--a", "b", "c"],
        ),
    ],
)
def test_a_program_stands_in_for_one_of_the_image(tmp_path, spec, expected):
    spec = {**spec, "volumeMounts": [{"name": "models", "mountPath": "/mnt/models"}]}
    started = launched(tmp_path, spec, LLM_SERVER)
    ran = subprocess.run(
        started.command, env=started.env, cwd=started.folder, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str([word.format(models=tmp_path / "models") for word in expected])


def test_a_server_of_the_built_in_table_can_be_forked(tmp_path):
    spec = {"args": ["--model_name=iris", "--model_dir=/mnt/models"], "resources": {"limits": {"cpu": "1"}}}
    made = launched(tmp_path, spec, BUILT_IN["kserve/sklearnserver"])
    assert framework_of(made.command, made.env) == "sklearn"
