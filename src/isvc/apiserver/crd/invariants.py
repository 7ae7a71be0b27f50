"""What a structural schema promises beyond types: sets hold no item twice, keyed lists no key, objects inside objects
have an apiVersion and a kind."""

from __future__ import annotations

from typing import Any

import orjson

from isvc.apiserver.field_errors import duplicate, invalid, required
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.schemas import Schema


def check_invariants(value: Any, schema: Schema, path: str = "", *, is_root: bool = True) -> list[FieldError]:
    errors: list[FieldError] = []
    if isinstance(value, dict):
        if schema.get("x-kubernetes-embedded-resource") and not is_root:
            errors += _check_embedded(value, path)
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            if not isinstance(item, dict | list):
                continue
            if key in properties:
                inner = f"{path}.{key}" if path else key
                errors += check_invariants(item, properties[key], inner, is_root=False)
            elif isinstance(others, dict):
                errors += check_invariants(item, others, f"{path}[{key}]", is_root=False)
    elif isinstance(value, list):
        errors += _check_items(value, schema, path)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, item in enumerate(value):
                if isinstance(item, dict | list):
                    errors += check_invariants(item, items, f"{path}[{index}]", is_root=False)
    return errors


def _check_items(value: list[Any], schema: Schema, path: str) -> list[FieldError]:
    match schema.get("x-kubernetes-list-type"):
        case "set":
            return _duplicates(value, path)
        case "map":
            for index, item in enumerate(value):
                if item is not None and not isinstance(item, dict):
                    return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
            keys = schema.get("x-kubernetes-list-map-keys") or ()
            return _duplicates(
                [{key: item[key] for key in keys if key in item} if item else {} for item in value], path
            )
        case _:
            return []


def _duplicates(values: list[Any], path: str) -> list[FieldError]:
    """Returns one complaint per value, at its second appearance."""
    if len(values) < 2:
        return []
    seen: dict[bytes, int] = {}
    errors = []
    for index, value in enumerate(values):
        key = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            errors.append(duplicate(f"{path}[{index}]", value))
    return errors


def _check_embedded(value: dict[str, Any], path: str) -> list[FieldError]:
    errors = []
    for key in ("apiVersion", "kind"):
        if key not in value:
            errors.append(required(f"{path}.{key}"))
        elif not isinstance(value[key], str):
            errors.append(invalid(f"{path}.{key}", value[key], "must be a string"))
        elif not value[key]:
            errors.append(invalid(f"{path}.{key}", "", "must not be empty"))
    return errors
