"""A value against a structural schema, with Kubernetes' messages and its patience for old mistakes.

The schema is walked along with the value, so a large CustomResourceDefinition costs nothing until it is used, and then
only in proportion to the object. On an update, parts equal to what was stored before are not complained about again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, TypeAlias

from isvc.apiserver.crd.formats import is_well_formed
from isvc.apiserver.field_errors import invalid, not_supported, quote, required, text, too_long, too_many, type_invalid
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.patterns import matches
from isvc.kube.schemas import Schema

Identity: TypeAlias = tuple[Hashable, ...]
"""The keys of an item of a keyed list."""

_NEW: Final = object()
#: Messages about a combination of schemas belong to no field.
_NO_FIELD = "<nil>"


def validate(obj: Any, schema: Schema, old: Any = None) -> list[FieldError]:
    """Returns every complaint about the object; `old` is the stored object on an update."""
    errors: list[FieldError] = []
    _check(obj, schema, "", errors, _NEW if old is None else old)
    return list(dict.fromkeys(errors))


def _check(value: Any, schema: Schema, path: str, errors: list[FieldError], old: Any) -> int:
    """Appends complaints; answers how many checks passed, by which the best of failed alternatives is chosen."""
    if old is not _NEW and value == old:
        return 1
    before, passed = len(errors), 1
    _check_type(value, schema, path, errors)
    if value is not None:
        passed += _check_combinations(value, schema, path, errors)
        match value:
            case str():
                _check_text(value, schema, path, errors)
            case bool():
                pass
            case int() | float():
                _check_number(value, schema, path, errors)
            case list():
                passed += _check_list(value, schema, path, errors, old)
            case dict():
                passed += _check_map(value, schema, path, errors, old)
    if schema.get("enum") and not any(type(value) is type(e) and value == e for e in schema["enum"]):
        errors.append(not_supported(path, value, schema["enum"]))
    return passed + (4 if len(errors) == before else 0)


def _check_type(value: Any, schema: Schema, path: str, errors: list[FieldError]) -> None:
    expected = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type") or ""
    if not expected or (value is None and schema.get("nullable")):
        return
    actual = _json_type(value)
    if actual in expected.split(","):
        return
    if (actual == "integer" and expected == "number") or (
        isinstance(value, float) and value.is_integer() and "integer" in expected
    ):
        return
    errors.append(_wrong_type(path, expected, actual))


def _wrong_type(path: str, expected: str, value: str) -> FieldError:
    return type_invalid(path, value, f"{path} in body must be of type {expected}: {quote(value)}")


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
        case list():
            return "array"
        case _:
            return "object"


def _check_combinations(value: Any, schema: Schema, path: str, errors: list[FieldError]) -> int:
    passed = 0
    if "anyOf" in schema:
        passed += _check_any_of(value, schema["anyOf"], path, errors)
    if "oneOf" in schema:
        passed += _check_one_of(value, schema["oneOf"], path, errors)
    if "allOf" in schema:
        valid = 0
        for each in schema["allOf"]:
            count = len(errors)
            passed += _check(value, each, path, errors, _NEW)
            valid += len(errors) == count
        if valid != len(schema["allOf"]):
            none = "" if valid else ". None validated"
            errors.append(_combination(path, f"must validate all the schemas (allOf){none}"))
    if "not" in schema and not any(_failures(value, schema["not"], path)[0]):
        errors.append(_combination(path, "must not validate the schema (not)"))
    return passed


def _check_any_of(value: Any, alternatives: list[Schema], path: str, errors: list[FieldError]) -> int:
    best: tuple[list[FieldError], int] | None = None
    for each in alternatives:
        found, passed = _failures(value, each, path)
        if not found:
            return passed
        if best is None or passed > best[1]:
            best = found, passed
    errors.append(_combination(path, "must validate at least one schema (anyOf)"))
    errors.extend(best[0] if best else [])
    return best[1] if best else 0


def _check_one_of(value: Any, alternatives: list[Schema], path: str, errors: list[FieldError]) -> int:
    results = [_failures(value, each, path) for each in alternatives]
    valid = [passed for found, passed in results if not found]
    if len(valid) == 1:
        return valid[0]
    words = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
    errors.append(_combination(path, f"must validate one and only one schema (oneOf). {words}"))
    if valid or not results:
        return 0
    found, passed = max(results, key=lambda result: result[1])
    errors.extend(found)
    return passed


def _failures(value: Any, schema: Schema, path: str) -> tuple[list[FieldError], int]:
    found: list[FieldError] = []
    passed = _check(value, schema, path, found, _NEW)
    return found, passed


def _combination(path: str, words: str) -> FieldError:
    return invalid(_NO_FIELD, "", f"{quote(path)} {words}")


def _check_text(value: str, schema: Schema, path: str, errors: list[FieldError]) -> None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        errors.append(too_long(path, longest))
    elif shortest is not None and len(value) < shortest:
        errors.append(invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
    elif pattern and not matches(pattern, value):
        errors.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
    name = schema.get("format")
    if name and schema.get("type") == "string" and not is_well_formed(value, name):
        errors.append(type_invalid(path, value, f"{path} in body must be of type {name}: {quote(value)}"))


def _check_number(value: float, schema: Schema, path: str, errors: list[FieldError]) -> None:
    multiple, least, most = schema.get("multipleOf"), schema.get("minimum"), schema.get("maximum")
    if multiple is not None and value % multiple:
        errors.append(invalid(path, value, f"{path} in body should be a multiple of {text(multiple)}"))
    if least is not None:
        exclusive = bool(schema.get("exclusiveMinimum"))
        if value < least or (exclusive and value == least):
            words = "greater than" if exclusive else "greater than or equal to"
            errors.append(invalid(path, value, f"{path} in body should be {words} {text(least)}"))
    if most is not None:
        exclusive = bool(schema.get("exclusiveMaximum"))
        if value > most or (exclusive and value == most):
            words = "less than" if exclusive else "less than or equal to"
            errors.append(invalid(path, value, f"{path} in body should be {words} {text(most)}"))


def _check_list(value: list[Any], schema: Schema, path: str, errors: list[FieldError], old: Any) -> int:
    passed, items = 0, schema.get("items")
    if isinstance(items, dict):
        known = by_identity(old, schema)
        for index, item in enumerate(value):
            before = known.get(identity_of(item, schema), _NEW) if known else _NEW
            passed += _check(item, items, f"{path}[{index}]", errors, before)
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        errors.append(invalid(path, len(value), f"{path} in body should have at least {least} items"))
    if most is not None and len(value) > most:
        errors.append(too_many(path, len(value), most))
    if schema.get("uniqueItems") and any(value[i] in value[:i] for i in range(len(value))):
        errors.append(invalid(path, "", f"{path} in body shouldn't contain duplicates"))
    return passed


def _check_map(value: dict[str, Any], schema: Schema, path: str, errors: list[FieldError], old: Any) -> int:
    passed = 0
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        errors.append(invalid(path, len(value), f"{path} in body should have at least {least} properties"))
    if most is not None and len(value) > most:
        errors.append(too_many(path, len(value), most))
    for key, inner in _known_fields(value, schema):
        before = old.get(key, _NEW) if isinstance(old, dict) else _NEW
        passed += _check(value[key], inner, f"{path}.{key}" if path else key, errors, before)
    missing = [key for key in schema.get("required") or () if key not in value]
    errors.extend(required(f"{path}.{key}" if path else key) for key in missing)
    return passed


def _known_fields(value: dict[str, Any], schema: Schema) -> Iterator[tuple[str, Schema]]:
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for key in value:
        if key in properties:
            yield key, properties[key]
        elif isinstance(others, dict):
            yield key, others


def by_identity(items: Any, schema: Schema) -> dict[Identity | None, Any]:
    """Returns the items of a keyed list, the first where several have the same keys; none where they have no keys."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(items, list):
        return {}
    known: dict[Identity | None, Any] = {}
    for item in items:
        if (identity := identity_of(item, schema)) is not None:
            known.setdefault(identity, item)
    return known


def identity_of(item: Any, schema: Schema) -> Identity | None:
    """Returns the keys of an item of a keyed list; None for what is no map, or has a key that is no scalar."""
    if not isinstance(item, dict):
        return None
    identity = tuple(item.get(key) for key in schema.get("x-kubernetes-list-map-keys") or ())
    return None if any(isinstance(each, dict | list) for each in identity) else identity
