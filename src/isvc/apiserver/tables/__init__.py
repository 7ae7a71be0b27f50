"""Tables for `kubectl get`: the usual columns of built-in kinds, a CRD's own, name and age for the rest."""

from __future__ import annotations

from isvc.apiserver.request import Call
from isvc.apiserver.tables import builtin, custom
from isvc.apiserver.tables.columns import Column
from isvc.kube.objects import Object


def table(call: Call, objects: list[Object], meta: Object) -> Object:
    columns = columns_of(call)
    include = call.request.query.get("includeObject", "Metadata")
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [_row(columns, obj, include) for obj in objects],
    }


def columns_of(call: Call) -> list[Column]:
    description = call.description
    if description.custom:
        return custom.columns(description.columns or ())
    return builtin.columns(description.resource)


def _row(columns: list[Column], obj: Object, include: str) -> Object:
    row: Object = {"cells": [column.cell(obj) for column in columns]}
    if include == "Object":
        row["object"] = obj
    elif include == "Metadata":
        row["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    return row
