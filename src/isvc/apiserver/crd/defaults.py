"""Defaults from a structural schema, and what becomes of nulls: absent, unless the field is nullable."""

from __future__ import annotations

from typing import Any

from isvc.kube.objects import deep_copy
from isvc.kube.schemas import Schema


def apply_defaults(obj: dict[str, Any], schema: Schema) -> None:
    """Fills in defaults, in place. Nulls that the schema does not allow are removed, or replaced by the default."""
    _drop_nulls(obj, schema)
    _fill(obj, schema)


def _child(schema: Schema, key: str) -> Schema | None:
    found = (schema.get("properties") or {}).get(key)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def _drop_nulls(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        for key in list(value):
            item, inner = value[key], _child(schema, key)
            if inner is None:
                continue
            if item is None:
                if not inner.get("nullable") and inner.get("default") is None:
                    del value[key]
            elif isinstance(item, dict | list):
                _drop_nulls(item, inner)
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for item in value:
                if isinstance(item, dict | list):
                    _drop_nulls(item, items)


def _fill(value: Any, schema: Schema) -> None:
    if isinstance(value, dict):
        properties = schema.get("properties") or {}
        for key, inner in properties.items():
            if inner.get("default") is not None and (key not in value or _is_missing(value[key], inner)):
                value[key] = _copy(inner["default"])
        for key, item in value.items():
            found = _child(schema, key)
            if found is None:
                continue
            if key not in properties and _is_missing(item, found):
                item = value[key] = _copy(found.get("default"))
            if isinstance(item, dict | list):
                _fill(item, found)
    elif isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if _is_missing(item, items):
                    item = value[index] = _copy(items.get("default"))
                if isinstance(item, dict | list):
                    _fill(item, items)


def _is_missing(value: Any, schema: Schema) -> bool:
    return value is None and not schema.get("nullable")


def _copy(value: Any) -> Any:
    return deep_copy({"": value})[""] if isinstance(value, dict | list) else value
