"""The runtimes of the chart: accepted by our own webhook side by side, and chosen as with KServe."""

from __future__ import annotations

import subprocess

import pytest
from tests.recordings import FOLDER, load_all

from isvc.api.codec import decode
from isvc.api.inferenceservice.models import ModelSpec
from isvc.api.servingruntime import ClusterServingRuntime
from isvc.api.validation.servingruntime import validate_runtime
from isvc.kube.objects import Object, name_of
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.shipped import shipped_runtimes

ALL = list(shipped_runtimes())
RUNTIMES = [each for each in ALL if each["kind"] == "ClusterServingRuntime"]
REFERENCE = FOLDER / "base" / "30-runtimes.yaml"


@pytest.mark.parametrize("runtime", RUNTIMES, ids=name_of)
def test_accepted_beside_the_others(runtime: Object) -> None:
    verdict = validate_runtime(runtime, RUNTIMES, kind=ClusterServingRuntime)
    assert not verdict.problems


@pytest.mark.parametrize(
    ("model", "chosen"),
    [
        ({"name": "sklearn"}, "kserve-sklearnserver"),
        ({"name": "xgboost"}, "kserve-xgbserver"),
        ({"name": "lightgbm"}, "kserve-lgbserver"),
        ({"name": "paddle"}, "kserve-paddleserver"),
        ({"name": "pmml"}, "kserve-pmmlserver"),
        ({"name": "tensorflow"}, "kserve-tensorflow-serving"),
        ({"name": "pytorch"}, "kserve-torchserve"),
        ({"name": "huggingface"}, "kserve-huggingfaceserver"),
        ({"name": "vLLM"}, "kserve-vllmserver"),
    ],
    ids=lambda each: each if isinstance(each, str) else each["name"],
)
def test_chosen_by_format(model: dict[str, str], chosen: str) -> None:
    offered = Runtimes([], [Runtime.of(each, cluster=True) for each in RUNTIMES])
    wanted = decode(ModelSpec, {"modelFormat": model})
    assert offered.choose(wanted, multi_node=False).name == chosen


@pytest.mark.parametrize(
    ("name", "chosen"), [("sklearn", "mlserver"), ("mlflow", "mlserver"), ("onnx", "tritonserver")]
)
def test_chosen_by_protocol(name: str, chosen: str) -> None:
    offered = Runtimes([], [Runtime.of(each, cluster=True) for each in RUNTIMES])
    wanted = decode(ModelSpec, {"modelFormat": {"name": name}, "protocolVersion": "v2"})
    assert offered.choose(wanted, multi_node=False).name == f"kserve-{chosen}"


def test_only_the_one_for_several_nodes_has_workers() -> None:
    offered = Runtimes([], [Runtime.of(each, cluster=True) for each in RUNTIMES])
    wanted = decode(ModelSpec, {"modelFormat": {"name": "huggingface"}})
    assert offered.choose(wanted, multi_node=True).name == "kserve-huggingfaceserver-multinode"


def test_scripts_are_ones_that_bash_reads() -> None:
    scripts = [
        probe["command"][-1]
        for runtime in RUNTIMES
        for container in (*runtime["spec"]["containers"], *runtime["spec"].get("workerSpec", {}).get("containers", ()))
        for probe in (container, *(container[name].get("exec", {}) for name in container if name.endswith("Probe")))
        if probe.get("command", [""])[0] == "bash"
    ]
    assert len(scripts) == 7
    for script in scripts:
        subprocess.run(["bash", "-n", "-c", script], check=True)


@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference's runtimes are not here")
def test_formats_and_protocols_are_the_reference_ones() -> None:
    ours = {name_of(each): each["spec"] for each in RUNTIMES}
    theirs = {name_of(each): each["spec"] for each in load_all(REFERENCE) if name_of(each) in ours}
    assert theirs
    for name, spec in theirs.items():
        for field in ("supportedModelFormats", "protocolVersions", "annotations"):
            assert ours[name].get(field) == spec.get(field), name
