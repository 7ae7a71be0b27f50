"""PATCH, in four kinds: JSON patch, merge patch, strategic merge patch, and apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from isvc.apiserver import refusals
from isvc.apiserver.field_errors import forbidden, required
from isvc.apiserver.http.response import Response
from isvc.apiserver.objects.managed_fields import apply_fields
from isvc.apiserver.request import Call, Request
from isvc.apiserver.resources.strategy import FieldError
from isvc.apiserver.verbs import body, update
from isvc.apiserver.verbs.create import create_object, settle_namespace
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.builtin.shape import Undecodable
from isvc.kube.errors import BadRequest, Invalid, UnsupportedMediaType
from isvc.kube.objects import GVK, Object
from isvc.kube.patch import PatchError, json_patch, merge_patch, strategic

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_YAML = "application/apply-patch+yaml"
MAX_OPERATIONS = 10_000

#: From an object to the patched one.
Edit = Callable[[Object], Object]


async def patch(api: Api, call: Call) -> Response:
    kind = call.request.media_type
    if kind == APPLY_YAML:
        return await apply(api, call)
    if call.request.flag("force"):
        raise _bad_option(forbidden("force", "may not be specified for non-apply patch"))
    if kind in (JSON_PATCH, MERGE_PATCH) or (kind == STRATEGIC_PATCH and not call.description.custom):
        update.latest(api, call)
    edit = edit_of(call, kind)

    async def apply_patch(live: Object) -> Object:
        result = edit(live)
        new = _decode_patched(result, call)
        name = new["metadata"]["name"] = new["metadata"].get("name") or call.name
        if name != call.name:
            raise refusals.misnamed(name, call.name)
        return new

    return await update.change(api, call, apply_patch)


def _decode_patched(result: Object, call: Call) -> Object:
    """Decodes the patched object. What is wrong with its fields is said of the patch, and shown with it."""
    shown = orjson.dumps(result).decode()
    try:
        return body.decode(result, call)
    except Undecodable as error:
        raise refusals.invalid_patch(shown, error.why) from None


def edit_of(call: Call, kind: str) -> Edit:
    """Returns the function that a patch body stands for."""
    if kind == JSON_PATCH:
        operations = _parse(call.request, list)
        if len(operations) > MAX_OPERATIONS:
            raise BadRequest(f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}", status=413)
        return _with_refusal(lambda live: json_patch.apply(live, operations), Invalid)
    if kind == MERGE_PATCH:
        changes = _parse(call.request, dict)
        return _with_refusal(lambda live: merge_patch.apply(live, changes), BadRequest)
    if kind == STRATEGIC_PATCH and not call.description.custom:
        changes = _parse(call.request, dict)
        schema = call.description.strategy.schema or {}
        return _with_refusal(lambda live: strategic.apply(live, changes, schema), BadRequest)
    if call.description.custom:
        raise refusals.unsupported((JSON_PATCH, MERGE_PATCH, APPLY_YAML))
    raise UnsupportedMediaType("415: Unsupported Media Type", details={})


def _parse(request: Request, expected: type) -> Any:
    try:
        value = orjson.loads(request.body)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"error decoding patch: {body.complaint(error)}") from None
    if not isinstance(value, expected):
        found = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else "value"
        wanted = "[]handlers.jsonPatchOp" if expected is list else "map[string]interface {}"
        raise BadRequest(f"error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}")
    return value


def _with_refusal(edit: Edit, refusal: type[BadRequest] | type[Invalid]) -> Edit:
    def edit_or_refuse(live: Object) -> Object:
        try:
            return edit(live)
        except PatchError as error:
            if refusal is Invalid:
                raise Invalid("the server rejected our request due to an error in our request", details={}) from None
            raise BadRequest(str(error)) from None

    return edit_or_refuse


async def apply(api: Api, call: Call) -> Response:
    """Applies a manager's whole intent (server-side apply); creates what does not exist."""
    if not call.field_manager:
        raise _bad_option(required("fieldManager", "is required for apply patch"))
    intent = body.parse_yaml(call.request.body, call.description.gvk.kind)
    if not isinstance(intent, dict) or not intent.get("kind") or not intent.get("apiVersion"):
        raise BadRequest("invalid object type: /, Kind=")
    intent = body.outline(intent, call.description)
    if not isinstance(intent["metadata"], dict):
        raise BadRequest("metadata must be an object")
    settle_namespace(intent, call)
    named = bool(intent["metadata"].get("name"))
    name = intent["metadata"].setdefault("name", call.name)
    if name != call.name:
        raise refusals.misnamed(name, call.name)
    if intent["metadata"].get("managedFields"):
        raise BadRequest("metadata.managedFields must be nil")
    collection = call.description.collection
    if api.store.latest(collection, call.namespace, call.name) is None:
        if call.subresource:
            raise refusals.not_found(call.description.resource, call.name)
        if not named:
            raise refusals.nameless(call.name)
        if intent["metadata"].get("uid"):
            uid = intent["metadata"]["uid"]
            raise refusals.precondition(call.description.resource, call.namespace, call.name, uid, "")
        merged = apply_fields(call, intent, None)
        return await create_object(api, call, _convert_applied(merged, call), tracked=True)

    async def apply_intent(live: Object) -> Object:
        merged = apply_fields(call, intent, live)
        merged["metadata"].setdefault("resourceVersion", live["metadata"]["resourceVersion"])
        return _convert_applied(merged, call)

    return await update.change(api, call, apply_intent, tracked=True)


def _convert_applied(merged: Object, call: Call) -> Object:
    """Makes what was applied an object of its kind; that it cannot become one is the server's failure."""
    try:
        return body.decode(merged, call)
    except BadRequest as error:
        raise refusals.inconvertible(call.description.gvk, merged, error.message) from None


def _bad_option(error: FieldError) -> Invalid:
    return refusals.invalid(GVK("meta.k8s.io", "v1", "PatchOptions"), "", [error])
