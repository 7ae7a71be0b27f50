"""An object as KServe's own server would write it down again: types checked, zeros for required fields, one spelling.

KServe's defaulters read an object into a Go struct and write it out, and that writes `name: ""` where the CRD asks
for a name, and `500m` where somebody wrote 0.5. Users rely on it without knowing: what they may leave out, they may
leave out here.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from isvc.api.codec import DecodeError, decode, without_nulls
from isvc.api.components import MetricTarget
from isvc.api.meta import Kind
from isvc.api.schema import schema_for
from isvc.kube.objects import Object, name_of
from isvc.kube.quantity import Quantity, QuantityError
from isvc.kube.schemas import Schema

K = TypeVar("K", bound=Kind)

_NAMES = {
    str: "a string",
    bool: "true or false",
    int: "an integer",
    float: "a number",
    dict: "an object",
    list: "a list",
}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}
_ALWAYS_WRITTEN = {"divisor": "divisor", "averageUtilization": "type", "backend": "backend"}
"""Optional fields that Go cannot leave out, each by a field that tells its struct."""
_TARGET = schema_for(MetricTarget)["properties"]
"""Of a metric's target, quantities are passed on as they are written."""


def complete(value: Any, schema: Schema, path: str = "") -> Any:
    """The value with zeros for required fields, or itself when none is missing. Wrong types raise `DecodeError`."""
    _check(value, schema, path)
    if isinstance(value, dict):
        return _completed_object(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        below = schema["items"]
        items = [
            _zero(below) if item is None else complete(item, below, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return _canonical(value, path) if _is_quantity(schema) else value


def read(kind: type[K], obj: Object) -> tuple[Object, K]:
    """An object from the API server with its spec complete and without nulls, and the same typed.

    What a schema would not have accepted raises `DecodeError` with the path to it, in open parts such as pods, too.
    """
    spec = complete(obj.get("spec") or {}, _spec_schema(kind), "spec")
    if _has_null(spec):
        spec = without_nulls(spec)
    if spec is not obj.get("spec"):
        obj = {**obj, "spec": spec}
    return obj, decode(kind, obj)


@cache
def _spec_schema(kind: type[Kind]) -> Schema:
    schema: Schema = schema_for(kind)["properties"]["spec"]
    return schema


def read_other(kind: type[K], obj: Object) -> K:
    """The typed value of an object that another one refers to; the error's path begins with its kind and name."""
    try:
        return read(kind, obj)[1]
    except DecodeError as error:
        raise DecodeError(f"{kind.__name__} {name_of(obj)}: {error.path}", error.problem) from None


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    if isinstance(value, list):
        return any(map(_has_null, value))
    return value is None


def _completed_object(value: dict[str, Any], schema: Schema, path: str) -> dict[str, Any]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    changes: dict[str, Any] = {}
    for name, item in value.items():
        below = properties.get(name, others)
        if isinstance(below, dict) and item is not None:
            new = complete(item, below, f"{path}.{name}" if path else name)
            if _is_quantity(below) and properties == _TARGET:
                new = str(item)
            if new is not item:
                changes[name] = new
    written = (field for mark, field in _ALWAYS_WRITTEN.items() if mark in properties)
    for name in (*schema.get("required", ()), *written):
        if value.get(name) is None and (zero := _zero(properties.get(name, {}))) is not None:
            changes[name] = zero
    return value | changes if changes else value


def _is_quantity(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string")) and "pattern" in schema


def _canonical(value: int | float | str, path: str) -> str:
    try:
        canonical = str(Quantity.parse(value))
    except QuantityError:
        raise DecodeError(path, f"expected an amount such as 500m or 2Gi, got {value!r}") from None
    return value if isinstance(value, str) and value == canonical else canonical


def _zero(schema: Schema) -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return "0" if "pattern" in schema else 0
    if schema.get("type") == "object" and "properties" in schema:  # a map without entries is null in Go, and refused
        return complete({}, schema)
    return _ZEROS.get(schema.get("type", ""))


def _check(value: Any, schema: Schema, path: str) -> None:
    is_amount, allowed = schema.get("x-kubernetes-int-or-string"), _TYPES.get(schema.get("type", ""), ())
    if is_amount:
        allowed = (int, str, float) if "pattern" in schema else (int, str)
    elif schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        return  # nobody looks into it before the CRD does
    if allowed and (not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed)):
        wanted = " or ".join(_NAMES[each] for each in allowed)
        raise DecodeError(path, f"expected {wanted}, got {_NAMES.get(type(value), 'null')}")
    if is_amount and "pattern" not in schema and isinstance(value, int) and not -(2**31) <= value < 2**31:
        raise DecodeError(path, f"expected an integer of 32 bits, got {value}")
