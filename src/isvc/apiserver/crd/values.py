"""Values of custom resources, as they are kept and as CEL rules see them.

For rules, property names that CEL cannot write are escaped, numbers are doubles, and what the schema does not describe
is invisible.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from isvc.kube.schemas import Schema

_LARGEST = 2.0**63
_RESERVED = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while",
})  # fmt: skip


def whole_numbers(value: Any) -> Any:
    """Writes `1.0` as `1`, in place: JSON has one sort of number, and Go writes it in the shortest form."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < _LARGEST else value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        if isinstance(item, float | dict | list):
            value[key] = whole_numbers(item)
    return value


def cel_value(value: Any, schema: Schema, *, is_root: bool = False) -> Any:
    if isinstance(value, dict):
        return _map(value, schema, is_root=is_root or bool(schema.get("x-kubernetes-embedded-resource")))
    if isinstance(value, list):
        items = schema.get("items")
        return [cel_value(item, items) for item in value] if isinstance(items, dict) else []
    if schema.get("type") == "number" and isinstance(value, int):
        return float(value)
    return value


def _map(value: dict[str, Any], schema: Schema, *, is_root: bool) -> dict[str, Any]:
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    if isinstance(others, dict):
        return {key: cel_value(item, others) for key, item in value.items()}
    seen = {}
    for key, item in value.items():
        if is_root and key == "metadata" and isinstance(item, dict):
            seen[key] = {name: item[name] for name in ("name", "generateName") if name in item}
        elif is_root and key in ("apiVersion", "kind"):
            seen[key] = item
        elif key in properties and not (item is None and not properties[key].get("nullable")):
            for name in names_of(key):
                seen[name] = cel_value(item, properties[key])
    return seen


@lru_cache(maxsize=2048)
def names_of(key: str) -> tuple[str, ...]:
    """Returns the names of a property in a rule: escaped; a reserved word also as it is, which a selection may use."""
    return (escape(key), key) if key in _RESERVED else (escape(key),)


def escape(name: str) -> str:
    """Returns the name by which a rule addresses a property: `x-y` is `x__dash__y`, `namespace` is `__namespace__`."""
    if name in _RESERVED:
        return f"__{name}__"
    name = name.replace("__", "__underscores__")
    return name.replace(".", "__dot__").replace("-", "__dash__").replace("/", "__slash__")
