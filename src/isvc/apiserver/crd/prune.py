"""Fields that a structural schema does not know are dropped, except where it preserves unknown fields."""

from __future__ import annotations

from typing import Any

from isvc.kube.builtin.shape import WrongType, shape_metadata
from isvc.kube.schemas import Schema

_META = ("apiVersion", "kind", "metadata")
_NOTHING: Schema = {}


def prune(obj: dict[str, Any], schema: Schema | None, unknown: list[str]) -> None:
    """Removes unknown fields in place and appends their paths; apiVersion, kind and metadata are left alone."""
    preserve = schema is None or bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    _prune_map(obj, schema or _NOTHING, "", unknown, preserve=preserve, is_resource=True)


def _prune(value: Any, schema: Schema, path: str, unknown: list[str]) -> None:
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if isinstance(value, dict):
        _prune_map(value, schema, path, unknown, preserve=preserve)
    elif isinstance(value, list):
        items = schema.get("items") or _NOTHING
        for index, item in enumerate(value):
            if not preserve:
                _prune(item, items, f"{path}[{index}]", unknown)
            elif isinstance(item, dict):
                _prune_map(item, items, f"{path}[{index}]", unknown, preserve=True)


def _prune_map(
    value: dict[str, Any], schema: Schema, path: str, unknown: list[str], *, preserve: bool, is_resource: bool = False
) -> None:
    """Drops unknown fields; where they are preserved, only looks at known properties below."""
    properties = schema.get("properties") or _NOTHING
    others = schema.get("additionalProperties")
    embedded = is_resource or schema.get("x-kubernetes-embedded-resource")
    for key in list(value):
        if embedded and key in _META:
            if not is_resource:
                _coerce_metadata(value, key, path, unknown)
        elif key in properties:
            _prune_child(value[key], properties[key], path, key, unknown)
        elif isinstance(others, dict):
            _prune_child(value[key], others, path, key, unknown)
        elif not others and not preserve:
            unknown.append(f"{path}.{key}" if path else key)
            del value[key]


def _prune_child(value: Any, schema: Schema, path: str, key: str, unknown: list[str]) -> None:
    if isinstance(value, dict | list):
        _prune(value, schema, f"{path}.{key}" if path else key, unknown)


def _coerce_metadata(value: dict[str, Any], key: str, path: str, unknown: list[str]) -> None:
    """Gives the metadata of an object inside an object its shape: it is a struct as well."""
    if key == "metadata" and isinstance(value[key], dict):
        dropped: list[str] = []
        try:
            value[key] = shape_metadata(value[key], dropped)
        except WrongType:
            return
        unknown.extend(f"{path}.{each}" for each in dropped)
