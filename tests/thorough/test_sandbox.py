"""`isvc up --sandbox`: models serve as ever, and a pod that means harm gets nowhere."""

from __future__ import annotations

import json
import pickle
import socket
from pathlib import Path

import pytest
from tests.up.machine import EXAMPLES, Machine, machine, running, service, until
from tests.up.test_pods import pod, status

from isvc.local.node.sandbox.policy import why_not

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "confines"),
]
ROWS = json.dumps({"instances": [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5]]})
THIEF = """
import os, socket, urllib.request
def attempt(name, do):
    try:
        do()
        print(name, 'done', flush=True)
    except Exception as error:
        print(name, 'refused', type(error).__name__, flush=True)
attempt('kubeconfig', lambda: open({kubeconfig!r}).read())
attempt('home', lambda: os.listdir({home!r}))
attempt('plant', lambda: open({images!r}, 'w'))
attempt('service', lambda: socket.create_connection(('127.0.0.1', {port}), 5))
attempt('proxy', lambda: urllib.request.build_opener(urllib.request.ProxyHandler(
    {{'http': os.environ['http_proxy']}})).open('http://localhost:{port}/', timeout=5))
attempt('kill', lambda: os.kill(os.getppid(), 0))
attempt('own', lambda: open(os.path.join(os.environ['HOME'], 'x'), 'w').write('x'))
attempt('temporary', lambda: __import__('tempfile').mkstemp())
print('end', flush=True)
"""


@pytest.fixture(scope="module")
def here(models, tmp_path_factory):
    with running(machine(tmp_path_factory.mktemp("up"), models), "--ephemeral", "--sandbox") as here:
        yield here


def test_a_model_and_its_transformer_serve(here: Machine) -> None:
    here.apply(here.example("iris-transformer.yaml"))
    here.wait_ready("flowers")
    millimetres = (EXAMPLES / "iris-input-millimetres.json").read_text()
    assert here.predict("flowers", millimetres) == {"predictions": ["setosa", "versicolor", "virginica"]}
    here.kubectl("delete", "-f", "examples/iris-transformer.yaml")


def test_a_model_that_is_fetched_serves(here: Machine) -> None:
    source = here.claim / "iris"
    manifest = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "fetched"},
        "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": f"file://{source}"}}},
    }
    here.apply(manifest)
    here.wait_ready("fetched")
    assert here.predict("fetched", ROWS) == {"predictions": [0, 1]}
    here.kubectl("delete", "isvc", "fetched")


def theft(here: Machine, listener: socket.socket) -> str:
    """A program that tries what it must not do."""
    return THIEF.format(
        kubeconfig=str(here.home / "kubeconfig"),
        home=str(Path.home()),
        images=str(here.home / "images.yaml"),
        port=listener.getsockname()[1],
    )


def succeeded(said: list[str]) -> set[str]:
    return {line.split()[0] for line in said if line.split()[1:2] == ["done"]}


def test_a_pod_reaches_its_own_and_nothing_else(here: Machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here.apply(pod("thief", theft(here, listener), restart="Never"))
        until(lambda: status(here, "thief").get("phase") in ("Succeeded", "Failed"), "the pod to end")
    said = here.kubectl("logs", "thief").splitlines()
    assert said[-1] == "end", said
    assert succeeded(said) == {"own", "temporary"}, said
    here.kubectl("delete", "pod", "thief")


class Stolen:
    """What is read back as whatever its program makes of it."""

    def __init__(self, program: str) -> None:
        self.program = program

    def __reduce__(self) -> tuple[object, tuple[str, dict[str, object]]]:
        return exec, (self.program, {})


def test_a_model_in_a_forked_server_reaches_no_more(here: Machine) -> None:
    folder = here.claim / "thief"
    folder.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        (folder / "model.pkl").write_bytes(pickle.dumps(Stolen(theft(here, listener))))
        here.apply(service("thief", "pvc://models/thief"))
        said = until(lambda: logs_to_the_end(here), "the model to be loaded")
    assert succeeded(said) == {"own", "temporary"}, said
    here.kubectl("delete", "isvc", "thief")


def logs_to_the_end(here: Machine) -> list[str]:
    """What the program said when it has come to its end, and nothing before: the server fails then, and starts anew."""
    said = here.kubectl("logs", "deploy/thief-predictor", check=False).splitlines()
    return said[: said.index("end") + 1] if "end" in said else []
