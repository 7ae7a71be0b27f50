"""Recorded states of the reference as a cluster in memory: what the controller would read if it started there."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from tests.recordings import FOLDER, load
from tests.unit.api.conformance import base_objects, configuration

import isvc.api.resources
import isvc.kube.resource
import isvc.serving.thirdparty
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    LLM_INFERENCE_SERVICE_CONFIGS_V1ALPHA1,
    LLM_INFERENCE_SERVICES_V1ALPHA1,
)
from isvc.controllers.inferenceservice.watches import reads
from isvc.kube.conditions import TRUE
from isvc.kube.objects import Object, deep_copy, name_of
from isvc.kube.resource import Resource
from isvc.serving.config import CONFIG_MAP
from isvc.serving.environment import Environment
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.reads import Read

CRDS = {
    "services.serving.knative.dev": ("serving.knative.dev", "Service"),
    "virtualservices.networking.istio.io": ("networking.istio.io", "VirtualService"),
    "scaledobjects.keda.sh": ("keda.sh", "ScaledObject"),
    "opentelemetrycollectors.opentelemetry.io": ("opentelemetry.io", "OpenTelemetryCollector"),
    "leaderworkersets.leaderworkerset.x-k8s.io": ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"),
    "inferencepools.inference.networking.x-k8s.io": ("inference.networking.x-k8s.io", "InferencePool"),
}
OLDER = (LLM_INFERENCE_SERVICES_V1ALPHA1, LLM_INFERENCE_SERVICE_CONFIGS_V1ALPHA1)
RESOURCES = {
    (resource.group, resource.kind): resource
    for module in (isvc.kube.resource, isvc.serving.thirdparty, isvc.api.resources)
    for resource in vars(module).values()
    if isinstance(resource, Resource) and resource not in OLDER
}


@dataclass(frozen=True)
class State:
    """The recorded state after a step of a case, read when a test asks for its objects."""

    profile: str
    case: str
    number: int
    step: str
    leaked: tuple[str, ...]
    ignore: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.profile}/{self.case}: {self.step}"

    @cached_property
    def objects(self) -> dict[str, Object]:
        """All but what the reference forgot to delete."""
        recorded = load_golden(self)[self.number]["objects"]
        return {key: obj for key, obj in recorded.items() if not any(re.fullmatch(p, key) for p in self.leaked)}


def states(profiles: str) -> Iterator[State]:
    for path in sorted(FOLDER.glob(f"cases/{profiles}/*.yaml")):
        case = load(path)
        leaked: tuple[str, ...] = ()
        for number, each in enumerate(case["steps"]):
            step = each.get("name", f"step {number + 1}")
            leaked = tuple(case.get("leaks", {}).get(step, leaked))
            yield State(path.parent.name, path.stem, number, step, leaked, tuple(case.get("ignore", ())))


def load_golden(state: State) -> Any:
    return load(FOLDER / "golden" / state.profile / f"{state.case}.yaml")


def snapshots() -> Any:
    """The module by which recorded cases compare objects; it lies beside them."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module("snapshot")


def differences(state: State, service: Object, status: Object) -> Iterator[str]:
    """In what a status differs from the recorded one of the service, apart from what the case ignores."""
    compare = snapshots()
    before, after = (compare.normalize({**service, "status": each}) for each in (service.get("status") or {}, status))
    where = f"{state.step}: .objects.{service['kind']}.serving.kserve.io/{name_of(service)}"
    for line in compare.differences(before, after, where):
        if not any(re.search(pattern, line) for pattern in state.ignore):
            yield line


def unexplained(status: Object) -> list[Object]:
    """The conditions that are not True and do not say why."""
    return [
        condition
        for condition in status.get("conditions") or ()
        if condition["status"] != TRUE and not (condition.get("reason") and condition.get("message"))
    ]


class Memory(MemoryReader):
    """A reader of one state. Uids follow from names, so that owner references hold."""

    def __init__(self, state: State, declared: Iterable[Read] | None = None) -> None:
        absent = {
            RESOURCES[CRDS[name]] for name in load_profile(state.profile).get("withoutCrds") or () if name in CRDS
        }
        super().__init__(reads=reads(Environment()) if declared is None else declared, absent=absent)
        metadata = {"name": CONFIG_MAP, "namespace": "kserve"}
        self._add({"kind": "ConfigMap", "metadata": metadata, "data": configuration(state.profile)})
        for kind in (CLUSTER_SERVING_RUNTIMES.kind, CLUSTER_STORAGE_CONTAINERS.kind):
            for obj in shared(kind):
                self._add(obj)
        for key, obj in state.objects.items():
            self._add(obj, key.partition("/")[0].partition(".")[2])

    def _add(self, obj: Object, group: str = "") -> None:
        obj = deep_copy(obj)
        obj["metadata"] |= {"uid": f"{obj['kind']}/{name_of(obj)}", "resourceVersion": "1"}
        for reference in obj["metadata"].get("ownerReferences") or ():
            reference["uid"] = f"{reference['kind']}/{reference['name']}"
        group = group or obj.get("apiVersion", "").rpartition("/")[0]
        if resource := RESOURCES.get((group, obj["kind"])):
            self.put(resource, obj)

    def note(self, resource: Resource, obj: Object, *, owner: Object | None = None) -> None:
        raise AssertionError("nothing is written")


@cache
def shared(kind: str) -> list[Object]:
    return base_objects(kind)


@cache
def load_profile(profile: str) -> Any:
    return load(FOLDER / "profiles" / f"{profile}.yaml") or {}
