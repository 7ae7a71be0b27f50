"""Printer columns of a CustomResourceDefinition: the value at a JSON path, by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from isvc.apiserver.crd.formats import is_well_formed
from isvc.apiserver.crd.values import whole_numbers
from isvc.apiserver.tables.columns import AGE, NAME, Column, since
from isvc.apiserver.tables.json_path import json_path
from isvc.kube.objects import Object


def columns(printed: Sequence[Object]) -> list[Column]:
    try:
        return [NAME, *([_column(each) for each in printed] or [AGE_OF_CREATION])]
    except ValueError:  # of a path; kube-apiserver falls back, too
        return [NAME, AGE_OF_CREATION]


_CREATED = "CreationTimestamp is a timestamp representing the server time when this object was created."
AGE_OF_CREATION = Column("Age", AGE.cell, "date", description=_CREATED)


def _column(printed: Object) -> Column:
    find = json_path(printed["jsonPath"])
    kind = printed.get("type", "string")

    def cell(obj: Object) -> Any:
        return present(find(obj), kind)

    return Column(
        printed["name"],
        cell,
        kind,
        printed.get("priority", 0),
        printed.get("format", ""),
        printed.get("description") or f"Custom resource definition column (in JSONPath format): {printed['jsonPath']}",
    )


def present(found: list[Any], kind: str) -> Any:
    """Returns the cell for the first thing that a path found, by the column's type; empty cells are null."""
    if not found:
        return None
    value = found[0]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "date":
            return _age(value) if isinstance(value, str) else None
        case "integer":
            return int(value) if is_number else None
        case "number":
            return whole_numbers(value) if is_number else None
        case "boolean":
            return value if isinstance(value, bool) else None
    return "<no value>" if value is None else _text(value)


def _age(timestamp: str) -> str:
    return since(timestamp) if not timestamp or is_well_formed(timestamp, "date-time") else "<invalid>"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
