"""A disk that is full, and has room again: file systems of their own for pods, cached models, objects and logs."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
from pathlib import Path

import pytest
import yaml
from tests.up.machine import EXAMPLES, Machine, machine, service, until

MOUNT = "mount -t tmpfs -o size=2m,nr_inodes=500 tmpfs"
SMALL_DISKS = ("unshare", "-Urm", "sh", "-c", f'{MOUNT} "$0/pods" && {MOUNT} "$0/disk" && exec "$@"')
MOUNTS = 'for folder in "$0" "$1" "$2"; do mount -t tmpfs -o size=32m tmpfs "$folder" || exit; done; shift 2; exec "$@"'
THREE_SMALL_DISKS = ("unshare", "-Urm", "sh", "-c", MOUNTS)
TALK = "while echo still here; do sleep 0.1; done"
FILL = "dd if=/dev/zero of=big bs=4k; i=0; while touch $i; do i=$((i+1)); done; exec sleep 600"


@pytest.fixture(scope="module")
def here(models, tmp_path_factory):
    fresh = machine(tmp_path_factory.mktemp("full"), models)
    for folder in ("pods", "disk"):
        (fresh.home / folder).mkdir()
    fresh.start(prefix=(*SMALL_DISKS, str(fresh.home)))
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
    until(lambda: "no space left" in str(here.get("isvc", "iris")["status"].get("modelStatus")), "the status to tell")
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


def fill(folder: Path) -> Path:
    """Writes a file until nothing more goes in."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 10, 1):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
    assert os.statvfs(folder).f_bavail == 0
    return filler


def test_no_room_for_objects_and_logs_is_told_and_passes(models: Path, tmp_path: Path):
    here = machine(tmp_path, models)
    folders = [here.home / "apiserver", here.home / "logs", here.home / "run"]
    for each in folders:
        each.mkdir()
    here.start(prefix=(*THREE_SMALL_DISKS, *map(str, folders)))
    try:
        assert here.process is not None
        here.kubectl("create", "configmap", "before", "--from-literal=a=b")
        fillers = [fill(Path(f"/proc/{here.process.pid}/root{each}")) for each in folders]
        large, names = tmp_path / "large", itertools.count()
        large.write_bytes(b"b" * 900_000)

        def is_refused() -> bool:  # not the first perhaps: a log of writes keeps the room that it once had
            write = ("create", "configmap", f"meanwhile-{next(names)}", f"--from-file=a={large}")
            return "the disk is full: free some space" in here.kubectl(*write, check=False)

        until(is_refused, "a write to be refused")
        assert here.get("configmap", "before")["data"] == {"a": "b"}
        for pid in here.processes(b"bin/envoy") + here.processes(b"api_server_program"):
            os.kill(pid, signal.SIGKILL)
        until(lambda: "before" in here.kubectl("get", "configmap", check=False), "the API server to be back")

        for filler in fillers:
            filler.unlink()
        until(lambda: "created" in here.kubectl("create", "configmap", "afterwards", check=False), "room for objects")
        here.apply(service("iris", "pvc://models/iris"))
        here.wait_ready("iris")
        assert "Traceback" not in here.output.read_text()
    finally:
        here.stop()


def test_a_cached_model_that_fills_the_disk_has_a_remedy_and_leaves_no_half(here: Machine, tmp_path: Path):
    """Nobody announced its size: the disk is full in the middle of the download."""
    with (tmp_path / "model.joblib").open("wb") as file:
        file.write(os.urandom(3 << 20))
    group, cache = yaml.safe_load_all((EXAMPLES / "local-model-cache.yaml").read_text())
    here.apply(group)
    spec = {**cache["spec"], "sourceModelUri": f"file://{tmp_path}", "modelSize": "1Mi"}
    here.apply({**cache, "spec": spec})
    until(lambda: "give its models more space" in here.isvc("explain", "lmc/iris").stdout, "a remedy")
    here.kubectl("wait", "--for=jsonpath={.status.copies.failed}=1", "localmodelcache/iris", "--timeout=60s")
    assert here.process is not None
    models = Path(f"/proc/{here.process.pid}/root{here.home}/disk/models/models")
    assert [each.name for each in models.iterdir()] == [".downloads"]
    until(lambda: not list(models.glob(".downloads/*/model/*")), "what came of it to go")
    (tmp_path / "model.joblib").write_bytes(b"small")
    here.kubectl("wait", "--for=jsonpath={.status.copies.available}=1", "localmodelcache/iris", "--timeout=120s")
    here.kubectl("delete", "localmodelcache", "iris", "--timeout=60s")
    here.kubectl("delete", "localmodelnodegroup", "workers")
