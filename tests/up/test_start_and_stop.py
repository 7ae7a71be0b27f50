"""Starting, stopping, being killed, and starting again."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.up.machine import Machine, machine, service, until

ROWS = json.dumps({"instances": [[5.1, 3.5, 1.4, 0.2]]})
LLM_V1ALPHA1, LLM_V1ALPHA2 = (
    f"llminferenceservices.{version}.serving.kserve.io" for version in ("v1alpha1", "v1alpha2")
)


@pytest.fixture
def here(models, tmp_path):
    fresh = machine(tmp_path, models)
    yield fresh
    fresh.stop()
    until(lambda: fresh.processes() == [], "all processes to end")


def test_kill_9_leaves_nothing_and_the_next_start_recovers_everything(here, tmp_path):
    for name in ("sqlite3", "sklearn"):  # of the folder where it is started, for whatever the user has them
        (tmp_path / f"{name}.py").write_text("raise ImportError('not for isvc')")
    here.start(prefix=("sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path)))
    assert (here.home / "kubeconfig").stat().st_mode & 0o077 == 0
    shutil.copytree(here.claim / "iris", rose := here.claim / "rose")
    here.apply(service("iris", "pvc://models/iris"))
    here.apply(service("rose", "pvc://models/rose"))
    here.wait_ready("iris", "rose")
    uid = here.get("isvc", "iris")["metadata"]["uid"]
    apply_llm_service(here)
    webhook_ports = (here.home / "run" / "webhook-ports.json").read_text()
    here.kubectl("run", "once", "--image=python", "--restart=Never", "--command", "--",
                 "sh", "-c", "echo begun; exec sleep 600")  # fmt: skip
    here.kubectl("run", "brief", "--image=python", "--restart=Never", "--command", "--", "echo", "done")
    here.kubectl("wait", "--for=condition=Ready", "pod/once", "--timeout=60s")
    here.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/brief", "--timeout=60s")
    assert len(here.processes()) >= 3
    here.process.kill()
    here.process.wait()
    until(lambda: here.processes() == [], "all processes to end")
    assert here.isvc("status").returncode == 3
    assert "not running" in here.isvc("down").stdout
    shutil.rmtree(rose)

    here.start()
    refusal, answer = (
        here.run("curl", "-sS", f"{here.gateway}/serving/default/{name}/v1/models/{name}:predict", "-d", ROWS)
        for name in ("rose", "iris")
    )
    assert json.loads(answer) == {"predictions": [0]}, "the first request did not wait for the pod"
    assert " within 60 s" not in refusal, "it waited for a pod that cannot start"
    again = here.isvc("up")
    assert again.returncode == 1
    assert "already running" in again.stderr
    assert here.get("isvc", "iris")["metadata"]["uid"] == uid
    assert (here.home / "run" / "webhook-ports.json").read_text() == webhook_ports, "the CRDs had to be written again"
    assert here.get(LLM_V1ALPHA1, "chat")["spec"]["model"]["criticality"] == "Critical"

    until(lambda: here.get("pod", "once")["status"]["phase"] == "Failed", "the pod that was to run once")
    assert "isvc was stopped while it ran" in here.kubectl("describe", "pod", "once")
    assert (here.kubectl("logs", "once"), here.kubectl("logs", "brief")) == ("begun\n", "done\n")
    assert "previous terminated container" in here.kubectl("logs", "brief", "--previous", check=False)
    debug = ("debug", "brief", "-i", "--image=busybox", "--profile=general")
    assert "none of whose containers run" in here.kubectl(*debug)
    assert here.get("pod", "brief")["status"]["phase"] == "Succeeded"
    assert here.isvc("down").stdout == "stopped\n"
    assert here.processes() == []
    assert here.process.wait(60) == 0


def apply_llm_service(here: Machine) -> None:
    """Both managers run in one process: LLM services are admitted, converted and reconciled, too."""
    model = {"uri": "hf://a/b", "name": "m"}
    kind = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": "LLMInferenceService"}
    here.apply({**kind, "metadata": {"name": "chat"}, "spec": {"model": {**model, "criticality": "Critical"}}})
    assert here.get(LLM_V1ALPHA2, "chat")["spec"]["model"] == model, "it was not converted"
    until(lambda: here.get(LLM_V1ALPHA2, "chat").get("status", {}).get("conditions"), "the controller's word on it")
    worker = ("patch", "llminferenceservice", "chat", "--type=merge", "-p", '{"spec":{"worker":{}}}')
    assert "worker" in here.kubectl(*worker, check=False), "it was not refused"


def test_files_that_cannot_be_used_are_told(here):
    database = here.home / "apiserver" / "objects.db"
    database.parent.mkdir()
    database.write_bytes(b"nonsense" * 1000)
    refused = here.isvc("up")
    assert refused.returncode == 1
    assert f"{database} cannot be used" in refused.stderr
    assert "Traceback" not in refused.stderr
    here.env["ISVC_HOME"] = str(database)
    refused = here.isvc("up")
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"Error: cannot keep files in {database}")
