"""Workloads to plan: services with one container, and what was planned for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.unit.controllers.llmisvc.services import NAMESPACE, observe, service

from isvc.controllers.llmisvc.area import Area
from isvc.controllers.llmisvc.observed import Observed
from isvc.engine.plan import Want
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import Resource

POD: Object = {"containers": [{"name": "main", "image": "vllm"}]}


def workload(uri: str = "hf://a/b", *, metadata: Object | None = None, accounts: Any = None, **spec: Any) -> Observed:
    """A service whose merged spec has a model and a pod; anything else is given, `more` as `Observed` calls it."""
    more = spec.pop("more", {})
    model = {"uri": uri, **spec.pop("model", {})}
    merged = {"model": model, "template": POD, **spec}
    return observe(
        merged, raw=service(spec=merged, metadata=metadata or {}), **{"accounts": (accounts or {}).get, **more}
    )


def observed_with(observed: Observed, **changes: Any) -> Observed:
    return replace(observed, **changes)


def account(name: str, *secrets: str, **more: Any) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, **more.pop("metadata", {})}
    return {"metadata": metadata, "secrets": [{"name": secret} for secret in secrets], **more}


def children(area: Area) -> dict[tuple[str, str], Object]:
    """What is wanted, by kind and name."""
    return {
        (child.resource.kind, name_of(child.manifest)): child.manifest
        for part in area.parts
        if isinstance(part.answer, Want)
        for child in part.answer.children
    }


def live(resource: Resource, manifest: Object) -> dict[tuple[Resource, str], Object]:
    return {(resource, name_of(manifest)): manifest}


def container(pod: Object, name: str = "main") -> Object:
    return next(each for each in (*pod["containers"], *pod.get("initContainers", ())) if each["name"] == name)
