"""Dotted paths into objects: `spec.replicas`; a last key that has dots itself stands in brackets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from isvc.kube.objects import Object, dig


@cache
def steps(path: str) -> tuple[str, ...]:
    fields, _, key = path.partition("[")
    return (*fields.split("."), key.removesuffix("]")) if key else tuple(fields.split("."))


def at(obj: Object, path: str) -> Any:
    return dig(obj, *steps(path))


def put(obj: Object, path: str, value: Any) -> None:
    *parents, last = steps(path)
    for step in parents:
        obj = obj.setdefault(step, {})
    obj[last] = value


def without(value: Any, path: Sequence[str]) -> Any:
    """Returns the value without what the steps lead to; what is not on the way there is shared."""
    step = path[0]
    if not isinstance(value, dict) or step not in value:
        return value
    if len(path) > 1:
        return {**value, step: without(value[step], path[1:])}
    return {key: inner for key, inner in value.items() if key != step}
