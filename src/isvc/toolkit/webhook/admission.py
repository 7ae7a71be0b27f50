"""AdmissionReview, v1 and v1beta1, as values; no HTTP in here.

A review always gets a review back: what a handler refuses, raises or crashes with becomes a Status inside it, as
controller-runtime answers.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from isvc.kube.errors import ApiError, BadRequest, from_status
from isvc.kube.objects import GVK, Object
from isvc.kube.patch import json_patch
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.webhook.reviews import request_of

VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")
_TYPES = dict.fromkeys(("uid", "operation", "namespace", "name", "subResource"), str) | {"kind": dict, "userInfo": dict}


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    uid: str
    operation: str  # CREATE, UPDATE, DELETE or CONNECT
    namespace: str
    name: str
    kind: GVK
    object: Object  # empty on DELETE
    old_object: Object  # empty on CREATE
    dry_run: bool
    user: Object
    subresource: str = ""


@dataclass(frozen=True, slots=True)
class AdmissionResponse:
    allowed: bool
    code: int = 200
    message: str = ""
    patch: tuple[Object, ...] = ()
    warnings: tuple[str, ...] = ()
    details: Object | None = None  # of a refusal, as in a Status: the object, and what is wrong in which field


AdmissionHandler: TypeAlias = Callable[[AdmissionRequest], AdmissionResponse | Awaitable[AdmissionResponse]]


def allow(*warnings: str) -> AdmissionResponse:
    return AdmissionResponse(True, warnings=warnings)


def deny(message: str, code: int = 403, details: Object | None = None) -> AdmissionResponse:
    return AdmissionResponse(False, code, message, details=details)


def allow_change(before: Object, after: Object, *warnings: str) -> AdmissionResponse:
    """Returns that the object may be stored, changed from `before`, as it came, to `after`."""
    return AdmissionResponse(True, patch=tuple(json_patch.diff(before, after)), warnings=warnings)


def parse(review: Any) -> AdmissionRequest:
    """Returns the request of a decoded AdmissionReview; raises BadRequest when it is not one."""
    request = request_of(review, "AdmissionReview", VERSIONS)
    for field, wanted in _TYPES.items():
        if not isinstance(request.get(field) or wanted(), wanted):
            raise BadRequest(f"{field} of the AdmissionReview is no {'object' if wanted is dict else 'text'}")
    kind = request.get("kind") or {}
    obj = _object(request, "object", needed=request.get("operation") in ("CREATE", "UPDATE"))
    return AdmissionRequest(
        uid=request["uid"],
        operation=request.get("operation", ""),
        namespace=request.get("namespace", ""),
        name=request.get("name") or (obj.get("metadata") or {}).get("name", ""),
        kind=GVK(kind.get("group", ""), kind.get("version", ""), kind.get("kind", "")),
        object=obj,
        old_object=_object(request, "oldObject"),
        dry_run=bool(request.get("dryRun")),
        user=request.get("userInfo") or {},
        subresource=request.get("subResource", ""),
    )


def _object(request: Object, field: str, *, needed: bool = False) -> Object:
    """Returns one of a request's objects, checked as far as every handler relies on it."""
    obj = request.get(field) or {}
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata", {}), dict):
        raise BadRequest(f"{field} of the AdmissionReview is no object")
    if needed and "metadata" not in obj:
        raise BadRequest(f"{field} of the AdmissionReview has no metadata")
    try:
        orjson.dumps(obj)
    except TypeError as error:  # nested deeper than it can be copied
        raise BadRequest(f"{field} of the AdmissionReview cannot be handled: {error}") from None
    return obj


def answer(api_version: str, uid: str, response: AdmissionResponse) -> Object:
    """Returns the AdmissionReview that carries a response."""
    body: Object = {"uid": uid, "allowed": response.allowed}
    if response.patch:
        body["patchType"] = "JSONPatch"
        body["patch"] = base64.b64encode(orjson.dumps(response.patch)).decode()
    if response.warnings:
        body["warnings"] = list(response.warnings)
    if response.allowed:
        body["status"] = {"code": response.code}
    else:
        reason = from_status(response.code, {}).reason
        body["status"] = {"status": "Failure", "code": response.code, "reason": reason, "message": response.message}
        if response.details is not None:
            body["status"]["details"] = response.details
    return {"apiVersion": api_version, "kind": "AdmissionReview", "response": body}


def refusal(error: Exception) -> AdmissionResponse:
    """Returns the response that an exception becomes."""
    if isinstance(error, ApiError):
        return deny(error.message, error.status_code)
    if isinstance(error, TimeoutError):
        return deny("the webhook did not decide in time", 504)
    if isinstance(error, ClusterError):
        return deny(f"the webhook cannot decide now: {error}", 503)
    return deny(f"the webhook crashed: {type(error).__name__}: {error}", 500)
