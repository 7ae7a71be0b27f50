"""A run with many services: `bench.py`, which lies outside of this project, with phases of our own.

Whoever imports this has put the folder of `bench.py` on the path.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

bench: Any = importlib.import_module("bench")

TENTH = 10
FLOOR = 300
SERVERS = ("etcd", "kube-apiserver")
LIMIT = 1800.0  # seconds after which a phase is given up
NOTE = "bench.example/note"
CHILDREN = ("/apis/apps/v1/deployments", "/apis/autoscaling/v2/horizontalpodautoscalers")
WORKLOAD = ("deployments", "services", "horizontalpodautoscalers", "ingresses")

Object = dict[str, Any]
Figures = dict[str, float]


class Cluster(bench.Cluster):  # type: ignore[misc]
    """An API server that keeps its audit log in one file: a new one would begin every 100 MB."""

    def _spawn(self, program: str, *flags: str) -> None:
        super()._spawn(program, *flags, *(("--audit-log-maxsize=100000",) if program == "kube-apiserver" else ()))


bench.Cluster = Cluster


class Services(bench.InferenceServices):  # type: ignore[misc]
    """Every tenth of a namespace has an annotation, which its children get while the configuration lets them."""

    def service(self, i: int) -> Object:
        made: Object = super().service(i)
        if is_noted(i):
            made["metadata"]["annotations"] = {NOTE: "kept"}
        return made

    def created(self) -> bool:
        return all(_count(self.bench.kube, path) >= self.bench.n for path in CHILDREN)


def is_noted(i: int) -> bool:
    return i // int(bench.NAMESPACES) % TENTH == 0


class Scale(bench.Bench):  # type: ignore[misc]
    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(args)
        self.kinds = Services(self)
        self.seconds: Figures = {}  # of the phases that go on until the manager is idle: until all was done
        self.memory: Figures = {}
        self.servers: dict[str, Figures] = {}  # of etcd and kube-apiserver by phase: seconds of CPU, and MiB at its end
        self.smaller: Any | None = None  # the run with fewer services before this one

    # -- phases

    def measure(self, name: str, phase: Callable[[], None]) -> None:
        print(f"{self.n:,} services: {name}", flush=True)
        before = [bench._process_cpu(each.pid) for each in self.cluster.processes]
        super().measure(name, phase)
        found = zip(SERVERS, self.cluster.processes, before, strict=True)
        self.servers[name] = {
            figure: value
            for server, process, cpu in found
            for figure, value in (
                (f"{server} cpu_s", bench._process_cpu(process.pid) - cpu),
                (f"{server} rss_mib", bench._process_rss(process.pid)),
            )
        }
        if name in self.seconds:
            self.figures[name]["wall_s"] = self.seconds[name]

    def create(self) -> None:
        self.each(self._create, range(self.n))
        self._until(self.kinds.created)

    def ready(self) -> None:
        with self._timed("ready"):
            self.kinds.make_ready()
            self._until_each(bench.ISVC, bench._is_ready)
        self._until_idle()

    def restart(self) -> None:
        self._stop_controllers()
        self.controllers.clear()
        began = time.monotonic()
        self._start_controllers()
        self.seconds["restart"] = self._until_idle() - began

    def update(self) -> None:
        """Instead of an edit of all services: one of the configuration."""
        offset = self._audit_size()
        for process in self.controllers:
            Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # the peak counts from here
        section = json.dumps({"serviceAnnotationDisallowedList": [NOTE]})
        metadata = {"name": "inferenceservice-config", "namespace": "kserve"}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        with self._timed("update"):
            self.kube.patch(config, {"data": {"inferenceService": section}})
            self._until_each(bench.DEPLOYMENT, lambda deployment: not _has_note(deployment))
        self._until_idle()
        self.memory["peak"] = sum(_peak_mib(process.pid) for process in self.controllers)
        self._check_edited(offset)

    def delete(self) -> None:
        """Left out: the garbage collector of the cluster, not the manager, has the work."""

    def floor(self, floors: list[Any]) -> None:
        super().floor(floors[:FLOOR])

    # -- what they are made of

    def _install_crds(self) -> None:
        for _ in range(5):  # many at once keep a small machine busy for more than a request may take
            with contextlib.suppress(bench.ApiError):
                return super()._install_crds()  # type: ignore[no-any-return]
        return super()._install_crds()  # type: ignore[no-any-return]

    def _start_controllers(self) -> None:
        super()._start_controllers()
        self.memory.setdefault("started", self._rss())

    def _create(self, i: int) -> None:
        try:
            self.client().create(self.kinds.service(i))
        except bench.ApiError as error:
            if error.code != 409:  # it had come through before the connection was lost, and was sent again
                raise

    @contextlib.contextmanager
    def _timed(self, phase: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[phase] = time.monotonic() - began

    def _until(self, done: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not done():
            if time.monotonic() - began > LIMIT:
                raise SystemExit(f"given up after {LIMIT:.0f} s")
            time.sleep(0.5)

    def _until_each(self, kind: tuple[str, str], done: Callable[[Object], bool]) -> None:
        """Wait for all objects of a kind, by namespace: looking at few at a time costs the server little."""
        for space in (f"bench-{i}" for i in range(bench.NAMESPACES)):
            self._until(lambda space=space: all(map(done, self.kube.list(*kind, space))))  # type: ignore[misc]
            print(f"  {space} done", flush=True)

    def _until_idle(self) -> float:
        """Wait until the manager has used next to no CPU for two seconds; gives when that began."""
        since, cpu = time.monotonic(), self._cpu()
        while time.monotonic() - since < 2:
            time.sleep(0.25)
            if (now := self._cpu()) - cpu > 0.05:
                since, cpu = time.monotonic(), now
        return since

    def _check_edited(self, offset: int) -> None:
        """Children were written of exactly the services that have the annotation."""
        time.sleep(1)  # the audit log
        noted = (self.kinds.service(i)["metadata"] for i in range(self.n) if is_noted(i))
        concerned = {(each["namespace"], each["name"]) for each in noted}
        with self.cluster.audit_log.open("rb") as log:
            log.seek(offset)
            written = list(_written(map(json.loads, log), bench.WRITES))
        kinds = Counter(resource for resource, _, _ in written)
        print(f"  {dict(kinds)} written for {len(concerned)} services")
        self.edited = kinds["deployments"]
        if wrong := {(namespace, name) for _, namespace, name in written} ^ concerned:
            raise SystemExit(f"the edit reached too many or too few: {sorted(wrong)[:5]}")


def _count(kube: Any, path: str) -> int:
    page = kube.request("GET", f"{path}?limit=1")
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


def _written(events: Iterable[Object], verbs: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Resource, namespace and service of each child that the manager wrote."""
    for event in events:
        target = event.get("objectRef") or {}
        others = event.get("userAgent", "").startswith(("conformance-harness", "kube-apiserver"))
        if not others and event["verb"] in verbs and target.get("resource") in WORKLOAD:
            yield target["resource"], target["namespace"], target["name"].removesuffix("-predictor")


def _has_note(deployment: Object) -> bool:
    return NOTE in (deployment["spec"]["template"]["metadata"].get("annotations") or {})


def _peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
