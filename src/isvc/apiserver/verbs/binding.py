"""Bindings, by which a scheduler says where a pod runs: as pods/NAME/binding, and as objects, which are not kept."""

from __future__ import annotations

from dataclasses import replace

from isvc.apiserver import refusals
from isvc.apiserver.field_errors import not_supported, required
from isvc.apiserver.http.response import Response
from isvc.apiserver.objects.metadata import now
from isvc.apiserver.request import Call
from isvc.apiserver.resources.strategy import FieldError
from isvc.apiserver.verbs import body, update
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.conditions import TRUE, set_condition
from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object, annotations_of, dig, is_being_deleted, name_of
from isvc.kube.resource import PODS


async def create(api: Api, call: Call) -> Response:
    """Answers POST bindings."""
    binding = _read(call)
    description = api.registry.of_collection(str(PODS))
    assert description is not None
    name = dig(binding, "metadata", "name")
    if not isinstance(name, str) or not name:
        raise BadRequest("Name parameter required.")
    binding["metadata"].pop("uid", None)  # which Kubernetes heeds in the subresource alone
    return await _bind(api, replace(call, description=description, name=name, subresource="binding"), binding)


async def bind(api: Api, call: Call) -> Response:
    """Answers POST pods/NAME/binding."""
    return await _bind(api, call, _read(call))


def _read(call: Call) -> Object:
    binding = body.parse(call.request, "Binding")
    if not isinstance(binding, dict) or not isinstance(binding.get("target") or {}, dict):
        raise BadRequest("a Binding and its target are objects")
    if not isinstance(dig(binding, "metadata", "annotations") or {}, dict):
        raise BadRequest("metadata.annotations of a Binding is an object")
    return binding


async def _bind(api: Api, call: Call, binding: Object) -> Response:
    if dig(binding, "metadata", "name") != call.name:
        raise BadRequest("name in URL does not match name in Binding object")
    if errors := _errors(binding):
        raise refusals.Unspecific(", ".join(map(str, errors)))
    node = binding["target"]["name"]

    async def set_node(pod: Object) -> Object:
        update.check_uid(call, binding, pod)
        if why := _why_not(pod):
            raise refusals.conflict(call.description.resource._replace(plural="pods/binding"), call.name, why)
        pod["spec"]["nodeName"] = node
        noted = dig(binding, "metadata", "annotations") or {}
        if noted:
            pod["metadata"]["annotations"] = {**annotations_of(pod), **noted}
        set_condition(pod, {"type": "PodScheduled", "status": TRUE, "lastProbeTime": None}, now())
        return pod

    await update.change(api, call, set_node, tracked=True)
    return Response.success(code=201)


def _why_not(pod: Object) -> str:
    """Returns what keeps a pod from a node; nothing where it may have one."""
    if is_being_deleted(pod):
        return f"pod {name_of(pod)} is being deleted, cannot be assigned to a host"
    if taken := dig(pod, "spec", "nodeName"):
        return f'pod {name_of(pod)} is already assigned to node "{taken}"'
    if dig(pod, "spec", "schedulingGates"):
        return f"pod {name_of(pod)} has non-empty .spec.schedulingGates"
    return ""


def _errors(binding: Object) -> list[FieldError]:
    target = binding.get("target") or {}
    kind, node = target.get("kind") or "", target.get("name")
    errors = [] if kind in ("", "Node") else [not_supported("target.kind", kind, ("Node", "<empty>"))]
    if not isinstance(node, str) or not node:
        errors.append(required("target.name"))
    return errors
