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
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import yaml
from tests.commands import run_isvc
from tests.up.objects import Objects
from tests.waiting import wait_until

from isvc.kube.objects import Object

EXAMPLES = Path(__file__).parents[2] / "examples"
DEADLINE = 120.0
ANY_PORTS = ("--port", "0", "--api-port", "0", "--dashboard-port", "0")
ISVC = (sys.executable, "-P", "-c", "from isvc.cli import main; main()")

until = partial(wait_until, within=DEADLINE)


@dataclass
class Machine:
    """One home of isvc, which may be started and stopped, as somebody sees it who works in one namespace."""

    home: Path
    namespace: str = "default"
    process: subprocess.Popen[bytes] | None = None
    env: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.env = {**os.environ, "ISVC_HOME": str(self.home), "KUBECONFIG": str(self.home / "kubeconfig")}

    @property
    def kubeconfig(self) -> Path:
        return Path(self.env["KUBECONFIG"])

    @property
    def output(self) -> Path:
        """What `isvc up` printed."""
        return self.home.parent / f"{self.home.name}.out"

    @property
    def claim(self) -> Path:
        """Where pvc://models/ leads to."""
        return self.home / "volumes" / self.namespace / "models"

    @property
    def gateway(self) -> str:
        """The address of the gateway."""
        return str(json.loads((self.home / "run" / "up.json").read_text())["gateway"])

    def launch(self, *flags: str, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        with self.output.open("wb") as output:
            command = [*prefix, *ISVC, "up", *ANY_PORTS, "--no-warm-up", *flags]
            return subprocess.Popen(command, env=self.env, stdout=output, stderr=output)

    def start(self, *flags: str, prefix: tuple[str, ...] = ()) -> None:
        self.process = self.launch(*flags, prefix=prefix)
        self.__dict__.pop("_objects", None)  # which know the port of an earlier start
        until(self._is_ready, "isvc up")

    def _is_ready(self) -> bool:
        assert self.process is not None
        text = self.output.read_text()
        assert self.process.poll() is None, text
        return "\nready in" in text  # and not "address already in use"

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def isvc(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_isvc(*words, env=self.env)

    def run(self, *command: str, check: bool = True) -> str:
        patience = DEADLINE + 30  # a command that waits for so long may say what for
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=patience, cwd=EXAMPLES.parent
        )
        assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def kubectl(self, *words: str, check: bool = True) -> str:
        return self.run("kubectl", *words, check=check)

    @cached_property
    def _objects(self) -> Objects:
        return Objects(self.kubeconfig, self.namespace)

    def get(self, kind: str, name: str = "", *, labels: str = "") -> Object:
        """An object by kind and name, or a list of the kind's objects, as `kubectl get -o json` has it."""
        return self._objects.get(kind, name, labels=labels)

    def apply(self, manifests: Object | str) -> None:
        """Applies one manifest, or a text with some."""
        for each in yaml.safe_load_all(manifests) if isinstance(manifests, str) else [manifests]:
            self._objects.apply(each)

    def example(self, file: str) -> str:
        """A manifest whose services are addressed in this namespace, and not in the one that examples are for."""
        return (EXAMPLES / file).read_text().replace(".default/", f".{self.namespace}/")

    def wait_ready(self, *names: str) -> None:
        services = [f"isvc/{name}" for name in names]
        said = self.kubectl("wait", "--for=condition=Ready", *services, f"--timeout={DEADLINE:.0f}s", check=False)
        assert said.count("condition met") == len(names), said + self.kubectl("describe", "isvc,pods")

    def predict(self, name: str, body: str) -> Any:
        url = self.get("isvc", name)["status"]["url"]
        json_type = ("-H", "Content-Type: application/json")
        return json.loads(self.run("curl", "-sS", *json_type, f"{url}/v1/models/{name}:predict", "-d", body))

    @contextmanager
    def programs_of_images(self, programs: dict[str, Object]) -> Iterator[None]:
        """Adds programs to the table of this home; the suites that share it find it as it was."""
        table = self.home / "images.yaml"
        table.write_text(json.dumps({"images": programs}))
        try:
            yield
        finally:
            table.unlink()

    def processes(self, word: bytes = b"") -> list[int]:
        """Every process that was started by this home, however it is related to it, with this in its command line."""
        marks = (f"ISVC_HOME={self.home}".encode(), str(self.home / "pods").encode())
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environ, command = (folder / "environ").read_bytes(), (folder / "cmdline").read_bytes()
                state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
                works_here = (folder / "cwd").readlink().is_relative_to(self.home)  # Envoy has no environment
            except OSError:
                continue
            is_ours = (works_here or any(mark in environ for mark in marks)) and int(folder.name) != os.getpid()
            if state != "Z" and is_ours and word in command:
                found.append(int(folder.name))
        return found


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
    """A fresh home, with the models of the examples in place so that nobody waits for their training."""
    fresh = Machine(folder / "home")
    place(models, fresh)
    return fresh


def place(models: Path, here: Machine) -> None:
    shutil.copytree(models, here.claim, copy_function=os.link)


@contextmanager
def namespace_of(here: Machine, name: str, models: Path) -> Iterator[Machine]:
    """The same machine for somebody who works in a namespace that is made for the purpose, and goes with all its parts.

    kubectl and isvc take the namespace from their kubeconfig, as after `kubectl config set-context --current`.
    """
    there = Machine(here.home, name)
    here.kubectl("create", "namespace", name)
    place(models, there)
    config = json.loads(here.kubeconfig.read_text())
    config["contexts"][0]["context"]["namespace"] = name
    there.env["KUBECONFIG"] = str(here.home.parent / f"{name}.kubeconfig")
    there.kubeconfig.write_text(json.dumps(config))
    yield there
    here.kubectl("delete", "namespace", name, f"--timeout={DEADLINE:.0f}s")


def strange_pod() -> Object:
    """A pod whose image nobody knows."""
    containers = [{"name": "c", "image": "example.com/strange:1"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "strange"}, "spec": {"containers": containers}}


def service(name: str, uri: str, **predictor: object) -> Object:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": uri}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"predictor": {"model": model, **predictor}},
    }
