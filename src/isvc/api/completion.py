"""An object as KServe's own server would write it down again: types checked, zeros for required fields, one spelling.

KServe's defaulters read an object into a Go struct and write it out, and that writes `name: ""` where the CRD asks
for a name, and `500m` where somebody wrote 0.5. Users rely on it without knowing: what they may leave out, they may
leave out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from isvc.api.codec import DecodeError, decode, without_nulls
from isvc.api.inferenceservice.components import MetricTarget
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


def complete(obj: Object, kind: type[Kind]) -> Object:
    """Fills in zeros for required fields; returns the object itself if none misses. Wrong types raise `DecodeError`."""
    completed: Object = _complete(obj, _rules(kind), "")
    return completed


def read(kind: type[K], obj: Object) -> tuple[Object, K]:
    """Returns an object from the API server with its spec complete and without nulls, and the same typed.

    What a schema would not have accepted raises `DecodeError` with the path to it, in open parts such as pods, too.
    """
    spec = _complete(obj.get("spec") or {}, _spec_rules(kind), "spec")
    if _has_null(spec):
        spec = without_nulls(spec)
    if spec is not obj.get("spec"):
        obj = {**obj, "spec": spec}
    return obj, decode(kind, obj)


def read_other(kind: type[K], obj: Object) -> K:
    """Types an object that another one refers to; the error's path begins with its kind and name."""
    try:
        return read(kind, obj)[1]
    except DecodeError as error:
        raise DecodeError(f"{kind.__name__} {name_of(obj)}: {error.path}", error.problem) from None


@dataclass(frozen=True, slots=True)
class _Rules:
    """What a schema asks of a value, looked up once: every object on its way into the cluster is held against it."""

    schema: Schema
    types: tuple[type, ...]  # any, if empty
    is_quantity: bool
    is_text: bool  # and nothing else: whatever it says, it stays as it is
    fields: _Fields
    always: tuple[str, ...]  # fields that are written down even when they say nothing
    items: _Rules | None

    @classmethod
    def of(cls, schema: Schema) -> _Rules:
        properties = schema.get("properties", {})
        types = _types(schema)
        written = (field for mark, field in _ALWAYS_WRITTEN.items() if mark in properties)
        return cls(
            schema,
            types,
            _is_quantity(schema),
            types == (str,),
            _Fields(schema),
            (*schema.get("required", ()), *written),
            cls.of(schema["items"]) if "items" in schema else None,
        )


class _Fields(dict[str, "_Rules | None"]):
    """The rules of an object's fields by name, each made when it is first asked for: a pod has thousands."""

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self._properties: Mapping[str, Schema] = schema.get("properties", {})
        others = schema.get("additionalProperties")
        self._others = _Rules.of(others) if isinstance(others, dict) else None

    def __missing__(self, name: str) -> _Rules | None:
        if name not in self._properties:
            return self._others
        rules = self[name] = _Rules.of(self._properties[name])
        return rules


@cache
def _rules(kind: type[Kind]) -> _Rules:
    """Returns the rules of what people write: a status is its controller's, and no part of what is admitted."""
    schema = schema_for(kind)
    return _Rules.of({**schema, "properties": schema["properties"] | {"status": {}}})


@cache
def _spec_rules(kind: type[Kind]) -> _Rules:
    return _Rules.of(schema_for(kind)["properties"]["spec"])


def _types(schema: Schema) -> tuple[type, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return (int, str, float) if "pattern" in schema else (int, str)
    if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        return ()  # nobody looks into it before the CRD does
    return _TYPES.get(schema.get("type", ""), ())


def _is_quantity(schema: Schema) -> bool:
    return bool(schema.get("x-kubernetes-int-or-string")) and "pattern" in schema


def _complete(value: Any, rules: _Rules, path: str) -> Any:
    kind = type(value)
    if rules.types and kind not in rules.types:
        wanted = " or ".join(_NAMES[each] for each in rules.types)
        raise DecodeError(path, f"expected {wanted}, got {_NAMES.get(kind, 'null')}")
    if kind is dict:
        return _complete_object(value, rules, path)
    if kind is list and rules.items is not None:
        below = rules.items
        items = [
            _zero(below) if item is None else _complete(item, below, f"{path}[{index}]")
            for index, item in enumerate(value)
        ]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if rules.is_quantity:
        return _canonical(value, path)
    if kind is int and str in rules.types and not -(2**31) <= value < 2**31:
        raise DecodeError(path, f"expected an integer of 32 bits, got {value}")
    return value


def _complete_object(value: dict[str, Any], rules: _Rules, path: str) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, item in value.items():
        below = rules.fields[name]
        if below is not None and item is not None and not (below.is_text and type(item) is str):
            new = _complete(item, below, f"{path}.{name}" if path else name)
            if below.is_quantity and rules.schema.get("properties") == _TARGET:
                new = str(item)
            if new is not item:
                changes[name] = new
    for name in rules.always:
        if value.get(name) is None and (zero := _zero(rules.fields[name])) is not None:
            changes[name] = zero
    return value | changes if changes else value


def _canonical(value: int | float | str, path: str) -> str:
    try:
        canonical = str(Quantity.parse(value))
    except QuantityError:
        raise DecodeError(path, f"expected an amount such as 500m or 2Gi, got {value!r}") from None
    return value if isinstance(value, str) and value == canonical else canonical


def _zero(rules: _Rules | None) -> Any:
    if rules is None:
        return None
    schema = rules.schema
    if schema.get("x-kubernetes-int-or-string"):
        return "0" if "pattern" in schema else 0
    if schema.get("type") == "object" and "properties" in schema:  # a map without entries is null in Go, and refused
        return _complete({}, rules, "")
    return _ZEROS.get(schema.get("type", ""))


def _has_null(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_null, value.values()))
    if isinstance(value, list):
        return any(map(_has_null, value))
    return value is None
