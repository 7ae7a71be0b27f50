"""Edits of a service that are made at the press of a button, each with the kubectl command that does the same."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import orjson

from isvc.api.annotations import STOP
from isvc.api.resources import INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
from isvc.insight.operations import NotPossible
from isvc.insight.operations.history import History, undo_patch
from isvc.kube.objects import Object, dig, name_of, namespace_of, uid_of
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client, PatchKind

MOST_REPLICAS = 1000


@dataclass(frozen=True, slots=True)
class Edit:
    """A patch of a service; None deletes it. `says` is what has happened when it is made."""

    says: str
    kubectl: str
    patch: Any
    kind: PatchKind = PatchKind.MERGE


async def make_edit(client: Client, resource: Resource, service: Object, edit: Edit) -> None:
    name, namespace = name_of(service), namespace_of(service)
    if edit.patch is None:
        await client.delete(resource, name, namespace, uid=uid_of(service))
    else:
        await client.patch(resource, name, edit.patch, namespace, kind=edit.kind)


def stop(resource: Resource, service: Object) -> Edit:
    kubectl = _kubectl("annotate", resource, service, f"{STOP}=true", "--overwrite")
    return Edit(f"{name_of(service)} is being stopped", kubectl, {"metadata": {"annotations": {STOP: "true"}}})


def resume(resource: Resource, service: Object) -> Edit:
    kubectl = _kubectl("annotate", resource, service, f"{STOP}-")
    return Edit(f"{name_of(service)} is being started", kubectl, {"metadata": {"annotations": {STOP: None}}})


def scale(resource: Resource, service: Object, replicas: int) -> Edit:
    """Sets the replicas, of an InferenceService those of the predictor: at least so many, and no fewer at most."""
    if not 0 <= replicas <= MOST_REPLICAS:
        raise NotPossible(f"replicas have to be between 0 and {MOST_REPLICAS}")
    if resource == LLM_INFERENCE_SERVICES:
        return _patch_edit(resource, service, {"spec": {"replicas": replicas}}, f"scales to {replicas}")
    if resource != INFERENCE_SERVICES:
        raise NotPossible(f"a {resource.kind} has no replicas")
    predictor: Object = {"minReplicas": replicas}
    if (dig(service, "spec", "predictor", "maxReplicas") or replicas) < replicas:
        predictor["maxReplicas"] = replicas
    return _patch_edit(resource, service, {"spec": {"predictor": predictor}}, f"scales to {replicas}")


def shift_traffic(resource: Resource, service: Object, percent: int) -> Edit:
    """Sets the canary's share of requests: in `spec.canary`, else that of the revision that was rolled out last."""
    if resource != INFERENCE_SERVICES:
        raise NotPossible(f"a {resource.kind} has no canary")
    if not 0 <= percent <= 100:
        raise NotPossible("a share has to be between 0 and 100 per cent")
    says = f"sends {percent} % of requests to its canary"
    if canaries := dig(service, "spec", "canary"):
        changed = [{**canaries[0], "trafficPercent": percent}, *canaries[1:]]
        return _patch_edit(resource, service, {"spec": {"canary": changed}}, says)
    return _patch_edit(resource, service, {"spec": {"predictor": {"canaryTrafficPercent": percent}}}, says)


def undo(history: History) -> Edit:
    revision = history.revision(None)
    patch = undo_patch(history, revision)
    kubectl = _kubectl(
        "patch", history.resource, history.service, "--type=json", "-p", orjson.dumps(patch[1:]).decode()
    )
    return Edit(
        f"{name_of(history.service)} is back at revision {revision['revision']}", kubectl, patch, PatchKind.JSON
    )


def delete(resource: Resource, service: Object, confirmed: str) -> Edit:
    if confirmed != name_of(service):
        raise NotPossible(f"type the name of the service, {name_of(service)}, to delete it")
    return Edit(f"{name_of(service)} is being deleted", _kubectl("delete", resource, service), None)


def _patch_edit(resource: Resource, service: Object, patch: Object, says: str) -> Edit:
    kubectl = _kubectl("patch", resource, service, "--type=merge", "-p", orjson.dumps(patch).decode())
    return Edit(f"{name_of(service)} {says}", kubectl, patch)


def _kubectl(verb: str, resource: Resource, service: Object, *words: str) -> str:
    kind = str(resource)  # with its group: short names may be another project's, too
    return shlex.join(["kubectl", verb, kind, name_of(service), "-n", namespace_of(service), *words])


def canary_share(service: Object) -> int | None:
    """Returns the per cent of requests that the canary gets."""
    found: int | None = dig(service, "spec", "canary", 0, "trafficPercent")
    return dig(service, "spec", "predictor", "canaryTrafficPercent") if found is None else found
