"""A disk that is full, and has room again: a file system of its own for the pods' files, which a pod fills."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.up.machine import Machine, machine, service, until

SMALL_DISK = ("unshare", "-Urm", "sh", "-c", 'mount -t tmpfs -o size=2m,nr_inodes=500 tmpfs "$0" && exec "$@"')
TALK = "while echo still here; do sleep 0.1; done"
FILL = "dd if=/dev/zero of=big bs=4k; i=0; while touch $i; do i=$((i+1)); done; exec sleep 600"


@pytest.fixture(scope="module")
def here(models, tmp_path_factory):
    fresh = machine(tmp_path_factory.mktemp("full"), models)
    pods = fresh.home / "pods"
    pods.mkdir()
    fresh.start(prefix=(*SMALL_DISK, str(pods)))
    yield fresh
    fresh.stop()
    until(lambda: fresh.processes() == [], "all processes to end")


def run(here: Machine, name: str, script: str) -> None:
    here.kubectl("run", name, "--image=python", "--command", "--", "sh", "-c", script)
    here.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")


def container(here: Machine, name: str) -> dict:
    return here.get("pod", name)["status"]["containerStatuses"][0]


def test_what_runs_goes_on_and_what_starts_waits_until_there_is_room(here: Machine):
    run(here, "talker", TALK)
    run(here, "quitter", TALK)
    run(here, "filler", FILL)
    assert here.process is not None
    pods = f"/proc/{here.process.pid}/root{here.home}/pods"
    until(lambda: os.statvfs(pods).f_ffree == 0, "the disk to be full")

    here.apply(service("iris", "pvc://models/iris"))
    until(lambda: "disk of its node is full" in here.isvc("explain", "iris").stdout, "explain to name the disk")
    waited = here.isvc("wait", "iris", "--timeout", "60s")
    assert waited.returncode != 0
    assert "disk of its node is full" in waited.stdout + waited.stderr
    os.kill(int(container(here, "quitter")["containerID"].removeprefix("process://")), signal.SIGKILL)
    until(lambda: container(here, "quitter")["state"].get("waiting", {}).get("reason") == "CreateContainerError",
          "a start without room")  # fmt: skip
    assert "no space left on device" in container(here, "quitter")["state"]["waiting"]["message"]
    assert (container(here, "talker")["ready"], container(here, "talker")["restartCount"]) == (True, 0)

    here.kubectl("delete", "pod", "filler", "--grace-period=1")
    here.wait_ready("iris")
    here.kubectl("wait", "--for=condition=Ready", "pod/quitter", "--timeout=60s")
    until(lambda: "lines could not be written here]" in here.kubectl("logs", "talker"), "the log to go on")
    assert here.kubectl("logs", "talker", "--tail=1") == "still here\n"
    assert "Traceback" not in here.output.read_text()
    here.kubectl("delete", "isvc/iris", "pod/talker", "pod/quitter", "--grace-period=1")


def test_a_model_that_does_not_fit_is_told(here: Machine, tmp_path: Path):
    with (tmp_path / "model.joblib").open("wb") as file:
        file.truncate(64 << 20)
    here.apply(service("large", f"file://{tmp_path}"))
    until(lambda: "space" in str(here.get("isvc", "large").get("status", {}).get("modelStatus")), "the reason")
    assert "space" in here.kubectl("describe", "isvc", "large")
    here.kubectl("delete", "isvc", "large")
