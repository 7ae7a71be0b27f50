"""Recorded states of the reference as a cluster in memory: what the controller would read if it started there."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from tests.unit.api.conformance import base_objects, configuration

from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS
from isvc.kube.objects import Key, Object, labels_of, name_of, namespace_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import Resource
from isvc.serving.annotations import SERVICE
from isvc.serving.config import CONFIG_MAP

FOLDER = Path(os.environ.get("CONFORMANCE", Path(__file__).parents[3] / "shared" / "conformance"))
CRDS = {
    "services.serving.knative.dev": ("serving.knative.dev", "Service"),
    "virtualservices.networking.istio.io": ("networking.istio.io", "VirtualService"),
    "scaledobjects.keda.sh": ("keda.sh", "ScaledObject"),
    "opentelemetrycollectors.opentelemetry.io": ("opentelemetry.io", "OpenTelemetryCollector"),
}


@cache
def load(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@dataclass(frozen=True)
class State:
    """One recorded state of a case, without what the reference forgot to delete."""

    profile: str
    case: str
    step: str
    objects: dict[str, Object]
    ignore: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.profile}/{self.case}: {self.step}"


def states(profiles: str) -> Iterator[State]:
    for path in sorted(FOLDER.glob(f"golden/{profiles}/*.yaml")):
        case = load(FOLDER / "cases" / path.parent.name / path.name)
        leaked: list[str] = []
        for state in load(path):
            leaked = case.get("leaks", {}).get(state["step"], leaked)
            kept = {k: o for k, o in state["objects"].items() if not any(re.fullmatch(p, k) for p in leaked)}
            yield State(path.parent.name, path.stem, state["step"], kept, tuple(case.get("ignore", ())))


class Memory:
    """A reader of one state. Uids follow from names, so that owner references hold."""

    def __init__(self, state: State) -> None:
        self._absent = {CRDS[name] for name in (load_profile(state.profile).get("withoutCrds") or ()) if name in CRDS}
        self.objects: dict[tuple[str, str], list[Object]] = {}
        metadata = {"name": CONFIG_MAP, "namespace": "kserve"}
        self._add({"kind": "ConfigMap", "metadata": metadata, "data": configuration(state.profile)})
        for kind in (CLUSTER_SERVING_RUNTIMES.kind, CLUSTER_STORAGE_CONTAINERS.kind):
            for obj in shared(kind):
                self._add(obj)
        for key, obj in state.objects.items():
            group = key.partition("/")[0].partition(".")[2]
            self._add(copy.deepcopy(obj), group)

    def _add(self, obj: Object, group: str = "") -> None:
        obj = copy.deepcopy(obj)
        obj["metadata"] |= {"uid": f"{obj['kind']}/{name_of(obj)}", "resourceVersion": "1"}
        for reference in obj["metadata"].get("ownerReferences") or ():
            reference["uid"] = f"{reference['kind']}/{reference['name']}"
        group = group or obj.get("apiVersion", "").rpartition("/")[0]
        self.objects.setdefault((group, obj["kind"]), []).append(obj)

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        found = self.objects.get((resource.group, resource.kind), [])
        return [obj for obj in found if not namespace or namespace_of(obj) == namespace]

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return next((obj for obj in self.list(resource, namespace) if name_of(obj) == name), None)

    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]:
        if index_name == "service":
            return [
                pod
                for pod in self.list(resource)
                if str(Key(namespace_of(pod), labels_of(pod).get(SERVICE, ""))) == value
            ]
        return [obj for obj in self.list(resource) if (controller_of(obj) or {}).get("uid") == value]

    def keys(self, resource: Resource, index_name: str, value: str) -> list[Key]:
        return [Key.of(obj) for obj in self.by_index(resource, index_name, value)]

    def serves(self, resource: Resource) -> bool:
        return (resource.group, resource.kind) not in self._absent

    def note(self, resource: Resource, obj: Object) -> None:
        raise AssertionError("nothing is written")


@cache
def shared(kind: str) -> list[Object]:
    return base_objects(kind)


@cache
def load_profile(profile: str) -> Any:
    return load(FOLDER / "profiles" / f"{profile}.yaml") or {}
