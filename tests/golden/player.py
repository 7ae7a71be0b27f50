"""Plays a case of this repository on an API server: objects are applied, the controllers work, the platform reports.

A case is a list of steps in `cases/`; what is there after each step is in `recordings/`, under the same name.
`Platform` of the lifecycles plays Kubernetes and Knative; routes are accepted here.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import yaml
from tests import definitions
from tests.cluster.lifecycles.stage import Platform, foreign_crd

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
    SERVING_RUNTIMES,
    TRAINED_MODELS,
)
from isvc.kube.errors import AlreadyExists, Conflict, NotFound
from isvc.kube.objects import Object, deep_copy, name_of, namespace_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    INGRESSES,
    NAMESPACES,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    Resource,
)
from isvc.serving.config import CONFIG_MAP
from isvc.serving.thirdparty import (
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INTERCEPTOR_ROUTES,
    KNATIVE_SERVICES,
    REFERENCE_GRANTS,
    SCALED_OBJECTS,
    VIRTUAL_SERVICES,
)
from isvc.toolkit.client import Client

HERE = Path(__file__).parent
OURS = (
    INFERENCE_SERVICES,
    INFERENCE_GRAPHS,
    TRAINED_MODELS,
    LLM_INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    SERVING_RUNTIMES,
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
)
FOREIGN = (HTTP_ROUTES, INFERENCE_POOLS, INTERCEPTOR_ROUTES, KNATIVE_SERVICES, SCALED_OBJECTS, VIRTUAL_SERVICES)
ADD_ON = "keda"
"""The namespace of KEDA's HTTP add-on, in which services that it scales have a ReferenceGrant."""
BUILT_IN = (CONFIG_MAPS, DEPLOYMENTS, SERVICES, HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS, INGRESSES)
RECORDED = (*OURS[:4], *BUILT_IN, *FOREIGN)
_BY_KIND = {(each.api_version, each.kind): each for each in (*OURS, *RECORDED)}
_SCALED = [
    {"type": kind, "status": "True" if kind == "Ready" else "False"}
    for kind in ("Ready", "Active", "Fallback", "Paused")
]
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "namespace")


def case_names() -> list[str]:
    return sorted(path.stem for path in (HERE / "cases").glob("*.yaml"))


def read_case(name: str) -> Any:
    return _load(HERE / "cases" / f"{name}.yaml")


def read_recording(name: str) -> list[Object]:
    """All objects after each step. The file holds, per step, those that are new or changed, and null for each gone."""
    states: list[Object] = []
    objects: Object = {}
    for state in _load(HERE / "recordings" / f"{name}.yaml"):
        objects = {key: obj for key, obj in {**objects, **state["changed"]}.items() if obj is not None}
        states.append({"step": state["step"], "objects": objects})
    return states


def write_recording(name: str, states: list[Object]) -> None:
    written = []
    before: Object = {}
    for state in states:
        objects = state["objects"]
        changed = {key: obj for key, obj in objects.items() if before.get(key) != obj}
        written.append({"step": state["step"], "changed": {**changed, **dict.fromkeys(before.keys() - objects.keys())}})
        before = objects
    text = yaml.dump(written, Dumper=yaml.CSafeDumper, width=120)
    (HERE / "recordings" / f"{name}.yaml").write_text(text)


def _load(path: Path) -> Any:
    return yaml.load(path.read_text(), yaml.CSafeLoader)


class Player:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client, self.namespace = client, namespace
        self.platform = Platform(client)

    async def set_up(self, case: Object) -> None:
        await definitions.install(
            self.client, *map(definitions.ours, OURS), *map(foreign_crd, (*FOREIGN, REFERENCE_GRANTS))
        )
        with contextlib.suppress(AlreadyExists):
            await self.client.create(NAMESPACES, {"metadata": {"name": ADD_ON}})
        for left in (await self.client.list(CLUSTER_SERVING_RUNTIMES)).items:  # by other tests; messages name them all
            await self.client.delete(CLUSTER_SERVING_RUNTIMES, name_of(left))
        metadata = {"name": CONFIG_MAP, "namespace": self.namespace}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": _sections(case["config"])}
        await self.client.create(CONFIG_MAPS, config)

    async def play(self, step: Object) -> None:
        if changes := step.get("config"):
            await self.client.patch(CONFIG_MAPS, CONFIG_MAP, {"data": _sections(changes)}, self.namespace)
        for obj in step.get("apply", ()):
            resource = _BY_KIND[obj["apiVersion"], obj["kind"]]
            try:
                await self.client.patch(resource, name_of(obj), obj, self.namespace)
            except NotFound:
                await self.client.create(
                    resource, {**obj, "metadata": {**obj["metadata"], "namespace": self.namespace}}
                )
        for obj in step.get("delete", ()):
            await self.client.delete(_BY_KIND[obj["apiVersion"], obj["kind"]], name_of(obj), self.namespace)

    async def make_ready(self) -> None:
        await self.platform.make_ready(self.namespace)
        for route in (await self.client.list(HTTP_ROUTES, self.namespace)).items:
            status = {"parents": [_accepted(route, parent) for parent in route["spec"]["parentRefs"]]}
            await self._report(HTTP_ROUTES, route, status)
        for scaled in (await self.client.list(SCALED_OBJECTS, self.namespace)).items:
            await self._report(SCALED_OBJECTS, scaled, {"conditions": _SCALED})

    async def _report(self, resource: Resource, obj: Object, status: Object) -> None:
        if obj.get("status") != status:
            with contextlib.suppress(NotFound, Conflict):
                await self.client.patch(
                    resource, name_of(obj), {"status": status}, namespace_of(obj), subresource="status"
                )

    async def picture(self) -> Object:
        """Everything in the namespace, whatever it is called and whenever it was made."""
        seen: Object = {}
        for resource in RECORDED:
            for obj in (await self.client.list(resource, self.namespace)).items:
                if name_of(obj) not in (CONFIG_MAP, "kube-root-ca.crt"):
                    group = f".{resource.group}" if resource.group else ""
                    seen[f"{resource.kind}{group}/{name_of(obj)}"] = _normal(resource, obj, self.namespace)
        for grant in (await self.client.list(REFERENCE_GRANTS, ADD_ON)).items:
            if name_of(grant) == f"isvc-{self.namespace}":
                seen["ReferenceGrant.gateway.networking.k8s.io"] = _normal(REFERENCE_GRANTS, grant, self.namespace)
        return seen


def _sections(config: Object) -> dict[str, str]:
    return {name: json.dumps(section) for name, section in config.items()}


def _accepted(route: Object, parent: Object) -> Object:
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "observedGeneration": route["metadata"]["generation"],
    }
    return {"parentRef": parent, "controllerName": "example.com/gateway", "conditions": [condition]}


def _normal(resource: Resource, obj: Object, namespace: str) -> Object:
    obj = deep_copy(obj)
    for field in _OF_THE_SERVER:
        obj["metadata"].pop(field, None)
    for owner in obj["metadata"].get("ownerReferences", ()):
        owner.pop("uid")
    if resource not in OURS:
        obj.pop("status", None)
    if resource is SERVICES:
        for field in ("clusterIP", "clusterIPs"):
            if obj["spec"].get(field) not in ("None", ["None"]):
                obj["spec"].pop(field, None)
    normal: Object = json.loads(json.dumps(_without_times(obj)).replace(namespace, "NAMESPACE"))
    return normal


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if key not in ("lastTransitionTime", "time")}
    return [_without_times(item) for item in value] if isinstance(value, list) else value
