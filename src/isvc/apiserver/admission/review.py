"""The AdmissionReview that a webhook gets, and what its answer means."""

from __future__ import annotations

import base64
import binascii
import uuid
from typing import Any

import orjson

from isvc.apiserver.admission.caller import CallFailed
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.errors import ApiError, from_status
from isvc.kube.objects import GVK, Object
from isvc.kube.resource import Resource

_VERSION = "admission.k8s.io/v1"


def review_of(request: AdmissionRequest, obj: Object | None, old: Object | None, resource: Resource) -> Object:
    """Makes the review, about the objects as `resource` shows them, which may be another version than was asked for."""
    own = request.description.resource
    body: Object = {
        "uid": str(uuid.uuid4()),
        "kind": _kind(resource.gvk),
        "resource": _resource(resource),
        "requestKind": _kind(own.gvk),
        "requestResource": _resource(own),
        "operation": request.operation,
        "userInfo": request.user.info(),
        "object": obj,
        "oldObject": old,
        "dryRun": request.dry_run,
        "options": request.options or None,
    }
    if request.subresource:
        body["subResource"] = body["requestSubResource"] = request.subresource
    if request.name:
        body["name"] = request.name
    if request.namespace:
        body["namespace"] = request.namespace
    return {"kind": "AdmissionReview", "apiVersion": _VERSION, "request": body}


def response_in(answer: Object, uid: str) -> Object:
    """Returns the response in an answer; raises CallFailed when it does not belong to the question."""
    response = answer.get("response")
    if not isinstance(response, dict):
        raise CallFailed("received invalid webhook response: webhook response was absent")
    if answer.get("apiVersion") != _VERSION or answer.get("kind") != "AdmissionReview":
        found = GVK.of(answer)
        words = f"expected webhook response of {_VERSION}, Kind=AdmissionReview, got {found.api_version}"
        raise CallFailed(f"received invalid webhook response: {words}, Kind={found.kind}")
    if response.get("uid") != uid:
        words = f'expected response.uid="{uid}", got "{response.get("uid", "")}"'
        raise CallFailed(f"received invalid webhook response: {words}")
    return response


def patch_in(response: Object) -> list[Object]:
    """Returns the JSON patch of a mutating webhook, empty when it changes nothing."""
    encoded = response.get("patch")
    if not encoded:
        return []
    if response.get("patchType") != "JSONPatch":
        raise CallFailed(
            "received invalid webhook response: webhook returned response.patch but not response.patchType"
        )
    try:
        patch: Any = orjson.loads(base64.b64decode(encoded))
    except (binascii.Error, orjson.JSONDecodeError) as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from None
    return patch or []


def refusal(name: str, result: Object | None) -> ApiError:
    """Returns the error of a webhook that said no, in its own words and with its own code."""
    status = dict(result or {})
    by = f'admission webhook "{name}" denied the request'
    words = status.get("message") or status.get("reason")
    status["message"] = f"{by}: {words}" if words else f"{by} without explanation"
    code = max(int(status.get("code") or 0), 400)
    error = from_status(code, status)
    error.reason = status.get("reason") or ""  # type: ignore[misc]
    return error


def _kind(gvk: GVK) -> Object:
    return gvk._asdict()


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}
