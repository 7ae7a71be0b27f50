"""Objects through Go structs: the JSON that Go would write for an object, and what it would read from JSON.

A preset is rendered as the text of its JSON, so the order of fields matters (a block may begin in one and end in
another), and so does every character that Go escapes. And what comes out must still be of the types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from isvc.api import DecodeError
from isvc.api.llm.v1alpha2 import LLMInferenceService, LLMInferenceServiceConfig
from isvc.api.schema import schema_for
from isvc.kube import gojson, gourl
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity, QuantityError
from isvc.kube.schemas import Schema
from isvc.serving.llm.gotypes import go_type
from isvc.serving.templates.values import Field, Type

_RANGES = {"int32": 2**31, "int64": 2**63, "int": 2**63}
_KINDS = {"bool": "true or false", "int": "an integer", "uint": "an integer", "float": "a number", "string": "a string"}
_KINDS |= {"map": "an object", "struct": "an object", "slice": "a list"}
_PYTHON: dict[str, tuple[type[Any], ...]] = {"bool": (bool,), "int": (int,), "uint": (int,), "float": (int, float)}
_PYTHON |= {"string": (str,), "map": (dict,), "struct": (dict,), "slice": (list,)}
_UNSET: dict[str, Any] = {"quantity": "0", "number or text": 0, "url": ""}


def text_of(obj: Any, kind: Type) -> str:
    """Returns the JSON text of an object of a type."""
    try:
        return gojson.dumps(write(obj, kind))
    except RecursionError:
        raise DecodeError("", "nested too deeply") from None


def write(data: Any, kind: Type, path: str = "") -> Any:
    """Puts the object in Go's order, with the zeros that Go writes; last what the type does not know yet."""
    if kind.kind == "string" and isinstance(data, str):
        return data  # as most are
    if kind.kind == "pointer":
        return None if data is None else write(data, _elem(kind), path)
    if kind.scalar:
        return _scalar(data, kind, path)
    if data is None:
        return dict(_members({}, kind, path)) if kind.kind == "struct" else kind.zero()
    _check(data, kind, path)
    match kind.kind:
        case "struct":
            others = {key: each for key, each in data.items() if key not in _by_key(kind) and each is not None}
            return dict(_members(data, kind, path)) | others
        case "map":
            return gojson.sorted_map({key: write(each, _elem(kind), f"{path}.{key}") for key, each in data.items()})
        case "slice":
            return [write(each, _elem(kind), f"{path}[{index}]") for index, each in enumerate(data)]
    return data


def rewrite(data: Any, kind: Type, schema: Schema, path: str) -> Any:
    """Returns what was given, as Go writes it down again, without the zeros that Go adds.

    Zeros that were given (false, 0, "", [] and {}) go where the field is optional and no pointer, and amounts and
    addresses get the one spelling that Go has for them. Zeros that the CRD's schema requires or refuses stay, although
    Go leaves them out: it is the API server that says what it does not take.
    """
    if kind.kind == "pointer":
        return rewrite(data, _elem(kind), schema, path)
    if kind.scalar and data is not None:
        return _scalar(data, kind, path)
    if isinstance(data, list) and kind.kind == "slice":
        items = schema.get("items") or {}
        return [rewrite(each, _elem(kind), items, f"{path}[{index}]") for index, each in enumerate(data)]
    if not isinstance(data, dict):
        return data
    if kind.kind == "map":
        values = schema.get("additionalProperties")
        inner = values if isinstance(values, dict) else {}
        return {key: rewrite(each, _elem(kind), inner, f"{path}.{key}") for key, each in data.items()}
    fields, properties, required = _by_key(kind), schema.get("properties") or {}, schema.get("required") or ()
    return {
        key: rewrite(each, fields[key].type, properties.get(key) or {}, f"{path}.{key}") if key in fields else each
        for key, each in data.items()
        if each
        or key not in fields
        or key in required
        or not _goes_when_zero(fields[key])
        or _is_refused(each, properties.get(key) or {})
    }


def _is_refused(zero: Any, schema: Schema) -> bool:
    """Returns whether an API server refuses a zero of this schema."""
    if isinstance(zero, list | dict):
        return bool(schema.get("minItems") or schema.get("minProperties"))
    if isinstance(zero, str):
        pattern, allowed = schema.get("pattern"), schema.get("enum")
        is_chosen = not allowed or zero in allowed
        return bool(schema.get("minLength") or not is_chosen or (pattern and not re.search(pattern, zero)))
    return (schema.get("minimum") or 0) > 0


@cache
def _by_key(struct: Type) -> dict[str, Field]:
    fields: dict[str, Field] = {}
    for each in struct.fields:
        fields |= {each.key: each} if each.key else _by_key(each.type)
    return fields


@cache
def _places(struct: Type) -> dict[str, int]:
    """Returns where Go writes each field."""
    return {key: place for place, key in enumerate(_by_key(struct))}


@cache
def _never_omitted(struct: Type) -> frozenset[str]:
    """Returns the fields that are written even where nothing is given."""
    optional = {key for key, each in _by_key(struct).items() if each.omit == "zero" or _is_omitted_when_empty(each)}
    return frozenset(_by_key(struct).keys() - optional)


def _goes_when_zero(each: Field) -> bool:
    """Zeros behind pointers were given on purpose."""
    return _is_omitted_when_empty(each) and each.type.kind != "pointer"


def _is_omitted_when_empty(each: Field) -> bool:
    return bool(each.omit) and each.type.kind != "struct"


def _members(data: dict[str, Any], struct: Type, path: str) -> Iterator[tuple[str, Any]]:
    """Looks at the fields that are given, not at the many that a pod or a container could have."""
    fields = _by_key(struct)
    given_keys = {key for key, given in data.items() if given is not None and key in fields}
    for key in sorted(given_keys | _never_omitted(struct), key=_places(struct).__getitem__):
        given, each = data.get(key), fields[key]
        value = write(given, each.type, f"{path}.{key}" if path else key)
        if not _is_left_out(each, value, given):
            yield key, value


def _is_left_out(each: Field, value: Any, given: Any) -> bool:
    if each.type.kind == "pointer":
        return bool(each.omit) and value is None
    if each.omit == "zero":
        return not given
    return each.omit == "empty" and each.type.kind != "struct" and not value


def _scalar(data: Any, kind: Type, path: str) -> Any:
    if data is None:
        return _UNSET.get(kind.scalar)
    if kind.scalar == "quantity":
        try:
            return Quantity.parse(data).canonical() if not isinstance(data, bool | dict | list) else _misfit(data, path)
        except QuantityError:
            raise DecodeError(path, f"expected an amount such as 500m or 2Gi, got {data!r}") from None
    if kind.scalar == "json":
        return data
    is_number = isinstance(data, int) and not isinstance(data, bool) and kind.scalar == "number or text"
    if not isinstance(data, str) and not is_number:
        _misfit(data, path)
    return _url(data, path) if kind.scalar == "url" else data


def _misfit(data: Any, path: str) -> None:
    raise DecodeError(path, f"expected text, got {type(data).__name__}")


def _url(text: str, path: str) -> str:
    """Returns an address as Go writes it down again: what may not be in a path is escaped, templates too."""
    try:
        return gourl.normalize(text)
    except ValueError as error:
        raise DecodeError(path, f"expected an address, got {text!r}, which {error}") from None


def _check(data: Any, kind: Type, path: str) -> None:
    allowed = _PYTHON[kind.kind]
    if not isinstance(data, allowed) or (isinstance(data, bool) and bool not in allowed):
        raise DecodeError(path, f"expected {_KINDS[kind.kind]}, got {data!r:.60}")
    limit = _RANGES.get(kind.name)
    if limit is not None and isinstance(data, int) and not -limit <= data < limit:
        raise DecodeError(path, f"is out of range: {data}")


def _elem(kind: Type) -> Type:
    assert kind.elem is not None
    return kind.elem


def rewrite_spec(spec: Object, kind: type[LLMInferenceService | LLMInferenceServiceConfig]) -> Object:
    """Writes a spec down again as a program in Go would. Raises `DecodeError` for one that is not of its types.

    KServe's controllers rewrite a new object with their first write to it, so that is how its spec is stored.
    """
    schema = schema_for(kind)["properties"]["spec"]
    result: Object = rewrite(spec, go_type("llm.LLMInferenceServiceSpec"), schema, "spec")
    return result
