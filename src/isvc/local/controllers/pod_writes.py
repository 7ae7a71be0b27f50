"""Creates and deletes pods for the controllers that own them, with the events that tell of it."""

from __future__ import annotations

from typing import Final

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, deep_copy, dig, name_of, namespace_of
from isvc.kube.owners import controller_ref
from isvc.kube.resource import PODS, Resource
from isvc.toolkit.context import Context

BURST: Final = 500  # at most so many pods in one reconcile, as kube-controller-manager does it


def pod_of(owner: Object, resource: Resource, template: Object) -> Object:
    """Returns a pod of this template, controlled by its owner, whose name the API server completes."""
    template = deep_copy(template)
    metadata = template.get("metadata") or {}
    made = {
        "generateName": f"{name_of(owner)}-",
        "namespace": namespace_of(owner),
        "labels": metadata.get("labels") or {},
        "annotations": metadata.get("annotations") or {},
        "finalizers": metadata.get("finalizers") or [],
        "ownerReferences": [controller_ref(resource.typed(owner))],
    }
    return PODS.manifest(made, spec=template.get("spec") or {})


async def create_pod(context: Context, owner: Object, pod: Object, message: str = "Created pod: {}") -> Object:
    """Returns the pod as it was made; `message` is the event's, with {} for its name."""
    try:
        made = await context.create(PODS, pod)
    except ApiError as error:
        context.recorder.event(owner, "Warning", "FailedCreate", f"Error creating: {error.message}")
        raise
    context.recorder.event(owner, "Normal", "SuccessfulCreate", message.format(name_of(made)))
    return made


async def delete_pod(context: Context, owner: Object, pod: Object, message: str = "Deleted pod: {}") -> None:
    """Asks for a pod's end; one that is gone already is none of our business."""
    answer = await context.delete(PODS, pod)
    if answer is None:
        return
    if answer.get("kind") == "Pod" and dig(answer, "metadata", "deletionGracePeriodSeconds"):
        context.cache.note(PODS, answer)
    context.recorder.event(owner, "Normal", "SuccessfulDelete", message.format(name_of(pod)))
