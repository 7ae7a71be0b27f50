"""The forms an answer can take: whole objects, metadata only, or rows of a table for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isvc.apiserver.field_errors import quote
from isvc.apiserver.http.media import PROTOBUF, YAML, clauses
from isvc.apiserver.request import Call, Request
from isvc.apiserver.tables.columns import Column
from isvc.kube.errors import BadRequest, NotAcceptable
from isvc.kube.objects import Object
from isvc.wire.http1.message import JSON

OBJECT: Final = "object"
TABLE: Final = "table"
METADATA: Final = "metadata"

_FORMS = {"Table": TABLE, "PartialObjectMetadata": METADATA, "PartialObjectMetadataList": METADATA}
_KNOWN = (JSON, YAML, PROTOBUF, "*/*", "application/*", "")


def requested_form(request: Request) -> str:
    """Returns the first form in the Accept header that we can answer with."""
    accept = request.accept
    if not accept or accept == "application/json" or accept == "*/*":
        return OBJECT
    for media, options in clauses(accept):
        if media not in _KNOWN:
            continue
        form = _FORMS.get(options.get("as", ""))
        if not options.get("as"):
            return OBJECT
        if form and options.get("v") == "v1" and options.get("g") == "meta.k8s.io":
            if form == TABLE and media == PROTOBUF:
                continue
            if form == TABLE:
                _check_table_options(request)
            return form
    accepted = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {accepted}", details={})


def one_as(form: str, call: Call, obj: Object) -> Object:
    if form == METADATA:
        return metadata_only(obj)
    return table(call, [obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")})


def many_as(form: str, call: Call, objects: list[Object], meta: Object) -> Object:
    if form == METADATA:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "items": [metadata_only(obj) for obj in objects],
        }
    return table(call, objects, meta)


def metadata_only(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def _check_table_options(request: Request) -> None:
    included = request.query.get("includeObject", "")
    if included not in ("", "None", "Metadata", "Object"):
        problem = f"includeObject: Invalid value: {quote(included)}: must be 'Metadata', 'Object', 'None', or empty"
        raise BadRequest(f"Unable to convert to Table as requested: {problem}")


def table(call: Call, objects: list[Object], meta: Object) -> Object:
    columns = call.description.columns
    include = call.request.query.get("includeObject") or "Metadata"
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(columns, obj, include) for obj in objects],
    }


def _row(columns: Sequence[Column], obj: Object, include: str) -> Object:
    shown = obj if include == "Object" else metadata_only(obj) if include == "Metadata" else None
    return {"cells": [column.cell(obj) for column in columns], "object": shown}
