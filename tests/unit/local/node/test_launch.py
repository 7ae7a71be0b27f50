from __future__ import annotations

import json
from types import SimpleNamespace

from isvc.local.node.environment import Sources
from isvc.local.node.images import Program
from isvc.local.node.launch import launch


def launched(tmp_path, spec, program=Program()):  # noqa: B008 - frozen
    around = SimpleNamespace(
        pod={"metadata": {"name": "p"}, "spec": {}},
        folder=tmp_path,
        volumes={"models": tmp_path / "models"},
        sources=Sources(),
        ports={8080: 20001},
        env={},
    )
    return launch({"name": "c", "image": "i", **spec}, program, around, tmp_path / "termination-log")


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


def test_the_last_words_go_where_the_node_reads_them(tmp_path):
    started = launched(tmp_path, {"command": ["sh", "-c", "echo bye > /dev/termination-log"]})
    assert started.command[-1] == f"echo bye > {tmp_path}/termination-log"
    started = launched(tmp_path, {"command": ["sh", "-c", "echo bye > /tmp/end"], "terminationMessagePath": "/tmp/end"})
    assert started.command[-1] == f"echo bye > {tmp_path}/termination-log"
    assert json.loads(started.env["ISVC_MOUNTS"]) == {"/tmp/end": f"{tmp_path}/termination-log"}
