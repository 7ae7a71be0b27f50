"""Kubernetes' own controllers beside ours: both are given the same workloads, and say the same of them.

kube-controller-manager and kube-scheduler run on the embedded API server, which they test as well. A thread takes the
place of kubelets there: it says of every pod with a node that it runs, as `isvc up --simulate` does.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.differential.normal import differences
from tests.servers import start
from tests.up.machine import DEADLINE, Machine, running
from tests.waiting import wait_until
from tests.wire import Wire

WORKLOADS = Path(__file__).with_name("workloads.yaml")
NAMESPACE = "workloads"
MERGE = "application/merge-patch+json"
KINDS = (
    *("deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "cronjobs"),
    *("endpoints", "poddisruptionbudgets", "resourcequotas", "events"),
)
PROGRAMS = (
    ("kube-controller-manager", "--controllers=*,-node-lifecycle-controller"),  # nobody renews leases of nodes
    ("kube-scheduler",),
)
STEPS = (
    "set image deploy/web c=j",
    "scale deploy/web --replicas=1",
    "patch deploy/zero -p {'spec':{'replicas':2}}",
    "set image deploy/zero c=k",
    "rollout restart sts/db",
    "rollout restart ds/agent",
    "patch job/suspended -p {'spec':{'suspend':false}}",
    "scale sts/db --replicas=1",
    "rollout undo deploy/web",
    "patch deploy/paused -p {'spec':{'paused':false}}",
    "scale rs/bare --replicas=5",
    "delete pod db-0 --wait=false",
    "create job --from=cronjob/later manual",
    "delete deploy/web --cascade=orphan",
    f"apply -f {WORKLOADS}",
    "patch sts/db -p {'spec':{'updateStrategy':{'rollingUpdate':{'partition':1}}}}",
    "set image sts/db c=m",
    "rollout undo ds/agent",
    "patch deploy/web -p {'spec':{'strategy':{'rollingUpdate':{'maxSurge':0,'maxUnavailable':'100%'}}}}",
    "set image deploy/web c=n",
    "set env deploy/zero A=b",
    "rollout undo deploy/zero",
    "label pods -l app=bare app=other --overwrite",
    "patch job/suspended -p {'spec':{'suspend':true}}",
    "patch cronjob/later -p {'spec':{'suspend':true}}",
    "delete rs/bare --cascade=foreground",
    "delete sts/db ds/agent job/manual",
)
#: What belongs to one of the two clusters, and what the controllers of Kubernetes call by hashes of their own.
_LEFT_OUT = {
    *("uid", "resourceVersion", "managedFields", "annotations", "subsets", "terminatingReplicas"),
    *("pod-template-hash", "controller-revision-hash", "currentRevision", "updateRevision"),
}
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASHED = re.compile(r"\b(web|zero|paused|bare|agent|suspended|manual)-[a-z0-9]{5,10}(-[a-z0-9]{5})?\b")
#: Of the scheduler, of kubelets, and of controllers that a laptop has no use for.
_OTHERS = {"Scheduled", "FailedScheduling", "Created", "Started", "Killing", "NoPods", "UnexpectedJob"}


class Kubelets(threading.Thread):
    """Says of pods that they run, and deletes those that are to go."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(daemon=True)
        self._wire = Wire(url, token)
        self._ended = threading.Event()
        resources = {"cpu": "8", "memory": "16Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": resources, "allocatable": resources, "conditions": [ready]}
        self._wire.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        self._wire.ask("PATCH", "/api/v1/nodes/n/status", {"status": status}, MERGE)
        self._wire.ask("PATCH", "/api/v1/nodes/n", {"spec": {"taints": None}}, MERGE)

    def run(self) -> None:
        pods = f"/api/v1/namespaces/{NAMESPACE}/pods"
        while not self._ended.wait(0.1):
            for pod in self._wire.ask("GET", pods)[1]["items"]:
                path = f"{pods}/{pod['metadata']['name']}"
                if "deletionTimestamp" in pod["metadata"]:
                    self._wire.ask("DELETE", path, {"gracePeriodSeconds": 0})
                elif pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
                    conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
                    status = {"phase": "Running", "podIP": "10.0.0.1", "conditions": conditions}
                    self._wire.ask("PATCH", f"{path}/status", {"status": status}, MERGE)

    def end(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def original(folder: Path) -> Iterator[dict[str, str]]:
    """Kubernetes' controllers on an API server of ours; the environment of who uses it."""
    programs = Path(os.environ["KUBERNETES_PROGRAMS"])
    with ExitStack() as stack:
        cluster = start("embedded", folder)
        stack.callback(cluster.stop)
        for name, *flags in PROGRAMS:
            log = stack.enter_context((folder / f"{name}.log").open("wb"))
            command = [programs / name, "--kubeconfig", cluster.kubeconfig, "--leader-elect=false", "--secure-port=0"]
            process = subprocess.Popen([*map(str, command), *flags], stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.terminate)
        kubelets = Kubelets(cluster.url, cluster.token)
        kubelets.start()
        stack.callback(kubelets.end)
        yield {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}


def kubectl(*words: str, env: dict[str, str], check: bool = True) -> str:
    done = subprocess.run(["kubectl", *words], env=env, capture_output=True, text=True, timeout=DEADLINE)
    assert not check or done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    return done.stdout


def normal(value: Any) -> Any:
    if isinstance(value, dict):
        shown = {key: normal(each) for key, each in value.items() if key not in _LEFT_OUT}
        return {key: each for key, each in shown.items() if not key.endswith(("Time", "Timestamp"))}
    if isinstance(value, list):
        items = [normal(each) for each in value]
        is_typed = all(isinstance(each, dict) and "type" in each for each in items)
        return sorted(items, key=lambda each: each["type"]) if is_typed else items
    return _HASHED.sub(r"\1-HASH", _UID.sub("UID", value)) if isinstance(value, str) else value


def state(env: dict[str, str]) -> dict[str, Any]:
    said = kubectl("get", ",".join(KINDS), "-n", NAMESPACE, "-o", "json", env=env)
    shown: dict[str, Any] = {}
    for obj in yaml.safe_load(said)["items"]:
        if obj["kind"] == "Event":
            if obj["reason"] not in _OTHERS:
                about = obj["involvedObject"]
                message = obj["message"].removeprefix("(combined from similar events): ")
                shown[normal(f"{obj['reason']} of {about['kind']} {about['name']}: {message}")] = obj["type"]
        else:
            shown.setdefault(f"{obj['kind']} {normal(obj['metadata']['name'])}", []).append(normal(obj))
    return {key: sorted(each, key=str) if isinstance(each, list) else each for key, each in shown.items()}


def test_both_say_the_same(tmp_path: Path) -> None:
    with original(tmp_path) as theirs, running(Machine(tmp_path / "home"), "--simulate") as laptop:
        both = (theirs, laptop.env)

        def agree(after: str) -> None:
            def found() -> list[str]:
                return differences(state(theirs), state(laptop.env))

            try:
                wait_until(lambda: not found(), within=DEADLINE, every=0.5)
            except AssertionError:
                pytest.fail("\n".join([f"after {after}:", *found()]))

        for env in both:
            kubectl("create", "namespace", NAMESPACE, env=env)
            kubectl("wait", "--for=create", "serviceaccount/default", "-n", NAMESPACE, env=env)
            kubectl("apply", "-n", NAMESPACE, "-f", str(WORKLOADS), env=env)
        agree("they were created")
        for step in STEPS:
            for env in both:
                kubectl(*step.replace("'", '"').split(), "-n", NAMESPACE, env=env)
            agree(step)
