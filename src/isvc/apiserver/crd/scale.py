"""What the scale subresource reads has to be numbers, whatever the schema says."""

from __future__ import annotations

from typing import Any

from isvc.apiserver import field_errors
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import Object, dig

_MOST = 2**31 - 1
_GO_TYPES = {str: "string", bool: "bool", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}


def check_scale(obj: Object, scale: Object | None) -> list[FieldError]:
    if scale is None:
        return []
    paths = (scale["specReplicasPath"], scale["statusReplicasPath"])
    errors = [each for path in paths for each in _check_number(obj, path)]
    selector = scale.get("labelSelectorPath")
    if selector:
        value = dig(obj, *selector.lstrip(".").split("."))
        if value is not None and not isinstance(value, str):
            errors.append(field_errors.invalid(selector, "", _wrong_type(selector, value, "string")))
    return errors


def _check_number(obj: Object, path: str) -> list[FieldError]:
    value = dig(obj, *path.lstrip(".").split("."))
    if value is None:
        return []
    if isinstance(value, bool) or not isinstance(value, int):
        return [field_errors.invalid(path, 0, _wrong_type(path, value, "int64"))]
    if value < 0:
        return [field_errors.invalid(path, value, "should be a non-negative integer")]
    if value > _MOST:
        return [field_errors.invalid(path, value, f"should be less than or equal to {_MOST}")]
    return []


def _wrong_type(path: str, value: Any, expected: str) -> str:
    found = _GO_TYPES.get(type(value), "int64")
    return f"{path} accessor error: {value} is of the type {found}, expected {expected}"
