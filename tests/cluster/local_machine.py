"""`isvc up` as its users run it: a process of its own, kubectl and curl."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from tests.waiting import wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
DEADLINE = 120.0
HAS_TOOLS = bool(shutil.which("kubectl") and shutil.which("curl"))


until = partial(wait_until, within=DEADLINE)


@dataclass
class Machine:
    """One home of isvc, which may be started and stopped."""

    home: Path
    process: subprocess.Popen[bytes] | None = None
    flags: tuple[str, ...] = ("--port", "0", "--api-port", "0", "--dashboard-port", "0")
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.env = {**os.environ, "ISVC_HOME": str(self.home), "KUBECONFIG": str(self.home / "kubeconfig")}

    @property
    def output(self) -> Path:
        return self.home.parent / f"{self.home.name}.out"

    def launch(self, *flags: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-P", "-c", "from isvc.cli import main; main()"]
        with self.output.open("wb") as output:
            command = [*prefix, *program, "up", *self.flags, *flags]
            return subprocess.Popen(command, env=self.env, stdout=output, stderr=output)

    def start(self, *flags: str, prefix: tuple[str, ...] = ()) -> None:
        self.process = self.launch(*flags, prefix=prefix)
        until(self._is_ready, "isvc up")

    def _is_ready(self) -> bool:
        assert self.process is not None
        text = self.output.read_text()
        assert self.process.poll() is None, text
        return "ready in" in text

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def isvc(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from isvc.cli import main; main()", *words]
        return subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=DEADLINE)

    def run(self, *command: str, check: bool = True) -> str:
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=DEADLINE, cwd=EXAMPLES.parent
        )
        assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def kubectl(self, *words: str, check: bool = True) -> str:
        return self.run("kubectl", *words, check=check)

    def get(self, *words: str) -> dict:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def apply(self, manifest: dict | str, namespace: str = "default") -> None:
        text = manifest if isinstance(manifest, str) else json.dumps(manifest)
        command = ["kubectl", "apply", "-n", namespace, "-f", "-"]
        done = subprocess.run(command, env=self.env, input=text, capture_output=True, text=True, timeout=DEADLINE)
        assert done.returncode == 0, done.stderr

    def wait_ready(self, name: str, namespace: str = "default") -> None:
        words = ["wait", "-n", namespace, "--for=condition=Ready", f"isvc/{name}", f"--timeout={DEADLINE:.0f}s"]
        said = self.kubectl(*words, check=False)
        assert "condition met" in said, said + self.kubectl("describe", "isvc,pods", "-n", namespace)

    def predict(self, name: str, body: str, namespace: str = "default") -> dict:
        url = self.kubectl("get", "isvc", name, "-n", namespace, "-o", "jsonpath={.status.url}")
        json_type = ("-H", "Content-Type: application/json")
        return json.loads(self.run("curl", "-sS", *json_type, f"{url}/v1/models/{name}:predict", "-d", body))

    def processes(self, word: bytes = b"") -> list[int]:
        """Every process that was started by this home, however it is related to it, with this in its command line."""
        marks = (f"ISVC_HOME={self.home}".encode(), str(self.home / "pods").encode())
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environ, command = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            is_ours = any(mark in environ for mark in marks) and int(folder.name) != os.getpid()
            if state != "Z" and is_ours and word in command:
                found.append(int(folder.name))
        return found


def needs_embedded(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--cluster") != "embedded":
        pytest.skip("brings its own API server")


@contextmanager
def running(here: Machine, *flags: str) -> Iterator[Machine]:
    """`isvc up`, started and stopped; nothing of it is left."""
    try:
        here.start(*flags)
        yield here
    finally:
        here.stop()
        until(lambda: here.processes() == [], "all processes to end")


def machine(folder: Path, models: Path) -> Machine:
    """A fresh home, with the example models in place so that nobody waits for their training."""
    home = folder / "home"
    shutil.copytree(models, home / "volumes" / "default" / "models")
    return Machine(home)


def strange_pod() -> dict:
    """A pod whose image nobody knows."""
    containers = [{"name": "c", "image": "example.com/strange:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "strange"}, "spec": {"containers": containers}}


def service(name: str, uri: str, **predictor: object) -> dict:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": uri}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": {"model": model, **predictor}},
    }
