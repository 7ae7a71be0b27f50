"""Admission responses from verdicts, and from objects that are malformed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias, TypeVar

from isvc.api import DecodeError
from isvc.api.validation import Verdict
from isvc.kube.objects import Object
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse, allow, deny

A = TypeVar("A")
Handler: TypeAlias = Callable[[AdmissionRequest], AdmissionResponse]


def answer(request: AdmissionRequest, verdict: Verdict, code: int = 403) -> AdmissionResponse:
    """A refusal names the object and each field that is wrong, which kubectl prints one to a line."""
    if not verdict.problems:
        return allow(*verdict.warnings)
    causes = [{"field": problem.path, "message": problem.fault} for problem in verdict.problems]
    asked = {"group": request.kind.group, "kind": request.kind.kind, "name": request.name}
    return deny(verdict.message, code, {**asked, "causes": causes})


def refusing_malformed(handler: Callable[[AdmissionRequest], A]) -> Callable[[AdmissionRequest], A | AdmissionResponse]:
    """Returns the handler, with objects that are not of their types refused as bad requests."""

    def handled(request: AdmissionRequest) -> A | AdmissionResponse:
        try:
            obj, old = _without_nulls(request.object), _without_nulls(request.old_object)
            if obj is not request.object or old is not request.old_object:
                request = replace(request, object=obj, old_object=old)
            return handler(request)
        except DecodeError as error:
            return deny(str(error), 400)

    return handled


def _without_nulls(obj: Object) -> Object:
    """Returns the object without its null fields, which mean the same as absent ones."""
    if not isinstance(obj, dict):
        raise DecodeError("", "expected an object")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict | None):
        raise DecodeError("metadata", "expected an object")
    for field in ("labels", "annotations"):  # which are read before an object is decoded
        if metadata is not None and not isinstance(metadata.get(field), dict | None):
            raise DecodeError(f"metadata.{field}", "expected an object")
    return {name: part for name, part in obj.items() if part is not None} if None in obj.values() else obj


def validator(judge: Callable[[AdmissionRequest], Verdict], code: int = 403) -> Handler:
    """Returns a handler that judges what is stored; deletions pass."""

    def validate(request: AdmissionRequest) -> AdmissionResponse:
        return allow() if request.operation == "DELETE" else answer(request, judge(request), code)

    return refusing_malformed(validate)


def object_validator(validate: Callable[[Object, Object | None], Verdict], code: int = 403) -> Handler:
    """Returns a handler that judges objects by nothing but themselves and what they were."""
    return validator(lambda request: validate(request.object, request.old_object or None), code)
