"""The scale subresource: one number of a workload, whatever its kind, as an autoscaling/v1 Scale."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from isvc.apiserver import forms, refusals
from isvc.apiserver.field_errors import invalid
from isvc.apiserver.http.response import Response
from isvc.apiserver.request import Call
from isvc.apiserver.resources.description import Description, Scale
from isvc.apiserver.tables.columns import NAME, Column, age, at
from isvc.apiserver.verbs import body, patch, read, update
from isvc.apiserver.verbs.pipeline import Api, from_stored
from isvc.kube.errors import BadRequest, InternalError
from isvc.kube.objects import GVK, Object, dig
from isvc.kube.selectors import LabelSelector

SCALE = GVK("autoscaling", "v1", "Scale")
COLUMNS = (
    NAME,
    at("Desired", "spec", "replicas", default=0, kind="integer"),
    at("Available", "status", "replicas", default=0, kind="integer"),
    Column("Age", age, "date"),
)


async def get(api: Api, call: Call) -> Response:
    obj = await from_stored(call.description, read.find(api, call))
    _require_replicas(call.description, obj)
    scale, form = scale_of(call.description, obj), forms.requested_form(call.request)
    if form == forms.OBJECT:
        return Response.json(scale)
    shown = replace(call, description=replace(call.description, columns=COLUMNS))
    return Response.json(forms.one_as(form, shown, scale))


async def put(api: Api, call: Call) -> Response:
    wanted = _check(body.parse(call.request, SCALE.kind))
    name = dig(wanted, "metadata", "name") or ""
    if name != call.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({call.name})")
    return await _change(api, call, lambda _: wanted)


async def patch_scale(api: Api, call: Call) -> Response:
    edit = patch.edit_of(call, call.request.media_type)
    return await _change(api, call, edit)


async def _change(api: Api, call: Call, edit: patch.Edit) -> Response:
    description = call.description
    assert description.scale is not None
    path = description.scale.spec_replicas

    async def set_replicas(live: Object) -> Object:
        before = scale_of(description, live)
        after = _check(edit(before))
        replicas = (after.get("spec") or {}).get("replicas") or 0
        if replicas < 0 and not description.custom:  # whose schema says the same
            errors = [invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
            raise refusals.invalid(SCALE, call.name, errors)
        _set(live, path, replicas)
        for field in ("uid", "resourceVersion"):
            live["metadata"][field] = (after.get("metadata") or {}).get(field) or ""
            if not isinstance(live["metadata"][field], str):
                raise BadRequest(f"metadata.{field} of a Scale is a string")
        return live

    response = await update.change(api, call, set_replicas)
    return Response.json(scale_of(description, orjson.loads(response.body)))


def _require_replicas(description: Description, obj: Object) -> None:
    """Refuses a custom resource that does not say how many it wants: it has no scale."""
    assert description.scale is not None
    path = description.scale.spec_replicas
    if description.custom and _at(obj, path) is None:
        why = f'the spec replicas field ".{path}" does not exist'
        raise InternalError(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


def _check(value: Any) -> Object:
    if not isinstance(value, dict) or not all(isinstance(value.get(part) or {}, dict) for part in ("metadata", "spec")):
        raise BadRequest("a Scale is an object with metadata and a spec")
    if not isinstance((value.get("spec") or {}).get("replicas") or 0, int):
        raise BadRequest("spec.replicas of a Scale is a number")
    return value


def scale_of(description: Description, obj: Object) -> Object:
    scale = description.scale
    assert scale is not None
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Object = {"replicas": _at(obj, scale.status_replicas) or 0}
    if selector := _selector(obj, scale):
        status["selector"] = selector
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {field: meta[field] for field in kept if field in meta},
        "spec": {"replicas": replicas} if (replicas := _at(obj, scale.spec_replicas)) else {},
        "status": status,
    }


def _selector(obj: Object, scale: Scale) -> str:
    found = _at(obj, scale.label_selector) if scale.label_selector else None
    if isinstance(found, dict):
        plain = "matchLabels" not in found and "matchExpressions" not in found
        return str(LabelSelector.of(found) if plain else LabelSelector.from_spec(found))
    return str(found or "")


def _at(obj: Object, path: str) -> Any:
    return dig(obj, *path.lstrip(".").split("."))


def _set(obj: Object, path: str, value: int) -> None:
    *parents, last = path.lstrip(".").split(".")
    for parent in parents:
        obj = obj.setdefault(parent, {})
    obj[last] = value
