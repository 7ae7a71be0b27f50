"""Why a document cannot be served: its kind has no such version, or it does not become ready on a healthy cluster."""

from __future__ import annotations

from dataclasses import dataclass

from isvc.api.annotations import is_stopped
from isvc.api.resources import GROUP, MODEL_CACHES
from isvc.insight.rendering.documents import Document
from isvc.insight.simulation.kinds import KINDS
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.conditions import conditions_of
from isvc.kube.objects import GVK, Key, Object, dig
from isvc.kube.readiness import is_ready
from isvc.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a document has not all of its children: it was refused, or cannot be served."""

    document: Document
    message: str

    def __str__(self) -> str:
        return f"{self.document}: {self.message}"


def unserved_version(obj: Object) -> str:
    """Says what is wrong with an object of ours in a version that its kind does not have; empty for others."""
    gvk = GVK.of(obj)
    served = sorted(each.version for each in KINDS if (each.group, each.kind) == (gvk.group, gvk.kind))
    if gvk.group != GROUP or not served or gvk.version in served:
        return ""
    return f"there is no {gvk.kind} of {gvk.api_version}; its version is {' or '.join(served)}"


def unready(simulation: Simulation, resource: Resource, document: Object) -> str:
    """Returns one sentence; empty for what is ready, or stopped on purpose."""
    key = Key.of(document)
    live = simulation.objects.get(resource, key.name, key.namespace)
    if live is None:
        return f"the controller deletes it: there is no InferenceService {dig(document, 'spec', 'inferenceService')}"
    if is_stopped(live) or is_ready(live):
        return ""
    crashes = (str(each.error) for each in simulation.crashes if each.key == key)
    events = (
        event.message
        for event in reversed(simulation.events.recorded)
        if (event.kind, event.key, event.type) == (resource.kind, key, "Warning")
    )
    failure = dig(live, "status", "modelStatus", "lastFailureInfo", "message")
    conditions = conditions_of(live)
    said = (each["message"] for each in conditions if each.get("status") != "True" and each.get("message"))
    # A cache fills as nodes download, of which there are none here.
    unexplained = "" if resource in MODEL_CACHES else "it does not become ready"
    return next(filter(None, (*crashes, failure, *events, *said)), unexplained)
