"""The presets that come with the product: complete, valid, and their commands start a server as they should.

The commands run in a real shell; `vllm` is a script that tells how it was called.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from isvc.api.validation.llm import validate_llm_config
from isvc.controllers.llmisvc.presets import Sources, combine
from isvc.kube.objects import Object
from isvc.serving.llm.presets import Settings, preset_names
from isvc.serving.shipped import shipped_presets
from isvc.webhooks.llm import try_templates

PRESETS = {
    each["metadata"]["name"]: each | {"metadata": {**each["metadata"], "namespace": "kserve"}}
    for each in shipped_presets()
}
VLLM = """#!/bin/bash
if [ "$1" = --version ]; then echo "vllm ${VLLM_IS:-0.22.1}"; exit; fi
printf '%s\\n' "$@" > "$CALLED"
"""


def settings(*, tls: bool = False) -> Settings:
    return Settings("kserve", "gateway", "kserve", tls, "X-Model")


def merged(spec: Object, *, tls: bool = False) -> Object:
    raw = {
        "metadata": {"name": "mine", "namespace": "team"},
        "spec": {"model": {"uri": "hf://lab/model", "name": "lab/model"}, **spec},
    }
    sources = Sources(lambda place, name: PRESETS.get(name) if place == "kserve" else None, lambda *_: None, "kserve")
    return combine(raw, settings(tls=tls), sources).raw


@pytest.fixture
def called(tmp_path: Path):
    """Runs a container's command, and gives the arguments that the server was called with."""
    program = tmp_path / "vllm"
    program.write_text(VLLM)
    program.chmod(0o755)

    def call(pod: Object, *arguments: str, **environment: str) -> list[str]:
        command = pod["containers"][0]["command"]
        record = tmp_path / "called"
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLED": str(record), **environment}
        subprocess.run([*command, *arguments], env=environment, check=True, capture_output=True, text=True, timeout=30)
        return record.read_text().splitlines()

    return call


def value_of(flag: str, arguments: list[str]) -> str:
    return arguments[arguments.index(flag) + 1]


def test_there_is_one_for_every_name() -> None:
    assert PRESETS.keys() == preset_names()


@pytest.mark.parametrize("name", sorted(PRESETS))
@pytest.mark.parametrize("tls", [False, True])
def test_each_passes_admission(name: str, tls: bool) -> None:
    assert not validate_llm_config(PRESETS[name]).problems
    assert not try_templates(PRESETS[name], settings(tls=tls)).problems


def server_scripts() -> list[str]:
    """The scripts that start vLLM, of heads and workers."""
    pods = [
        pod
        for preset in PRESETS.values()
        for workload in (preset["spec"], preset["spec"].get("prefill") or {})
        for pod in (workload.get("template"), workload.get("worker"))
        if pod
    ]
    return [each["command"][2] for pod in pods for each in pod["containers"] if each["command"][0] == "/bin/bash"]


@pytest.mark.parametrize(
    ("begin", "end", "times"),
    [
        ("# The address of the group's first pod", 'echo "leader: $DP_ADDRESS"', 6),
        ("# Find the network cards that speak RoCE", 'index=${NCCL_IB_GID_INDEX:-none}"\nfi', 9),
        ("# Which flags this vLLM has.", "SHUTDOWN_TIMEOUT_ARGS=", 9),
    ],
)
def test_what_scripts_have_in_common_is_the_same_in_all_of_them(begin: str, end: str, times: int) -> None:
    """YAML cannot share a part of a text."""
    parts = [script[script.index(begin) : script.index(end)] for script in server_scripts() if begin in script]
    assert (len(parts), len(set(parts))) == (times, 1)


def test_a_server_is_started_with_its_model_and_names(called) -> None:
    arguments = called(merged({"parallelism": {"tensor": 2}})["template"], "--max-model-len", "4096")
    assert arguments[:2] == ["serve", "/mnt/models"]
    names = arguments.index("--served-model-name")
    assert arguments[names + 1 : names + 3] == ["lab/model", "publishers/team/models/lab/model"]
    assert value_of("--port", arguments) == "8000"
    assert value_of("--tensor-parallel-size", arguments) == "2"
    assert value_of("--shutdown-timeout", arguments) == "40"
    assert value_of("--max-model-len", arguments) == "4096"
    assert "--ssl-certfile" not in arguments


def test_certificates_are_used_where_tls_is_on(called) -> None:
    pod = merged({}, tls=True)["template"]
    assert value_of("--ssl-certfile", called(pod)) == "/var/run/kserve/tls/tls.crt"
    assert pod["containers"][0]["readinessProbe"]["httpGet"]["scheme"] == "HTTPS"


def test_an_older_server_gets_no_flags_that_it_does_not_know(called) -> None:
    arguments = called(merged({"kvCacheOffloading": {"cpu": "1Gi"}})["template"], VLLM_IS="0.15.0")
    assert "--disable-uvicorn-access-log" in arguments
    assert not {"--shutdown-timeout", "--kv-transfer-config", "--disable-access-log-for-endpoints"} & {*arguments}


def test_the_cache_goes_on_in_main_memory(called) -> None:
    pod = merged({"kvCacheOffloading": {"cpu": "1Gi"}})["template"]
    transfer = json.loads(value_of("--kv-transfer-config", called(pod)))
    assert transfer["kv_connector_extra_config"]["cpu_bytes_to_use"] == 2**30
    own = called(pod, VLLM_ADDITIONAL_ARGS="--kv-transfer-config none")
    assert own.count("--kv-transfer-config") == 1


def test_a_group_of_nodes_shares_the_ranks(called) -> None:
    parallelism = {"data": 4, "dataLocal": 2, "expert": True}
    spec = merged({"parallelism": parallelism, "worker": {"containers": []}})
    leader = {"LWS_LEADER_ADDRESS": "127.0.0.1"}
    head = called(spec["template"], **leader)
    worker = called(spec["worker"], **leader, LWS_WORKER_INDEX="1")
    assert value_of("--data-parallel-start-rank", head) == "0"
    assert value_of("--data-parallel-start-rank", worker) == "2"
    for arguments in (head, worker):
        assert value_of("--data-parallel-address", arguments) == "127.0.0.1"
        assert value_of("--data-parallel-rpc-port", arguments) == "5555"
        assert "--enable-expert-parallel" in arguments
    assert "--headless" in worker
    assert "--headless" not in head


def test_prefill_and_decode_stand_behind_the_sidecar(called) -> None:
    spec = merged({"prefill": {"parallelism": {"tensor": 4}}, "router": {"route": {}, "scheduler": {}}})
    assert value_of("--port", called(spec["template"])) == "8001"
    assert value_of("--tensor-parallel-size", called(spec["prefill"]["template"])) == "4"
    (sidecar,) = spec["template"]["initContainers"]
    assert "--inference-pool=team/mine-inference-pool" in sidecar["command"]


def test_cards_that_speak_roce_are_found(called, tmp_path: Path) -> None:
    """The script reads the kernel's own files; here a copy of its tree: two cards work, and one is down."""
    for card, state, index in (("mlx5_0", "ACTIVE", "3"), ("mlx5_1", "ACTIVE", "3"), ("mlx5_2", "DOWN", "1")):
        port = tmp_path / card / "ports" / "1"
        for folder in ("gid_attrs/types", "gids"):
            (port / folder).mkdir(parents=True)
        (port / "state").write_text(f"4: {state}")
        (port / "gid_attrs" / "types" / index).write_text("RoCE v2")
        (port / "gids" / index).write_text("0000:ffff:0a00")
    pod = json.loads(json.dumps(merged({})["template"]).replace("/sys/class/infiniband", str(tmp_path)))
    pod["containers"][0]["command"][2] = pod["containers"][0]["command"][2].replace(
        'eval "exec vllm serve', 'eval "exec vllm $NCCL_IB_HCA $UCX_NET_DEVICES $NVSHMEM_IB_GID_INDEX'
    )
    assert called(pod, KSERVE_INFER_ROCE="true")[:3] == ["mlx5_0,mlx5_1", "mlx5_0:1,mlx5_1:1", "3"]
