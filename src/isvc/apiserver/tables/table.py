"""A table as clients ask for it: columns of the kind, a row for each object."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.apiserver.request import Call
from isvc.apiserver.tables.columns import Column
from isvc.kube.objects import Object


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
    row: Object = {"cells": [column.cell(obj) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include == "Metadata":
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    else:
        row["object"] = None
    return row
