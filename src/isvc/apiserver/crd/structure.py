"""Whether a CustomResourceDefinition's schema is structural: every field has one type, said outside of conditions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isvc.apiserver.cel import CelError
from isvc.apiserver.crd.prune import prune
from isvc.apiserver.crd.rules import source_of
from isvc.apiserver.crd.schema_types import SchemaTypes
from isvc.apiserver.crd.validate import validate
from isvc.apiserver.field_errors import Struct, forbidden, invalid, not_supported, required
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import deep_copy
from isvc.kube.patterns import problem_with
from isvc.kube.schemas import Schema

_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_NEEDS_TYPE = {
    "root": "must not be empty at the root",
    "items": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def check_structure(schema: Schema, path: str) -> list[FieldError]:
    return sorted(_check(schema, path, "root"), key=str)


def _check(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    yield from _check_type(schema, path, level)
    for word in _UNSUPPORTED:
        if word in schema:
            yield forbidden(f"{path}.{word}", f"{word} is not supported")
    if schema.get("uniqueItems"):
        words = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{path}.uniqueItems", words)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        inner = f"{path}.x-kubernetes-preserve-unknown-fields"
        yield invalid(inner, False, "must be true or undefined")
    yield from _check_list_kind(schema, path)
    if "x-kubernetes-validations" in schema:
        yield from _check_rules(schema, path, is_root=level == "root")
    if "pattern" in schema:
        yield from _check_pattern(schema["pattern"], path)
    if schema.get("default") is not None:
        yield from _check_default(schema["default"], schema, f"{path}.default")
    yield from _check_conditions(schema, path)
    yield from _check_inside(schema, path, level)


def _check_inside(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    items, others = schema.get("items"), schema.get("additionalProperties")
    if isinstance(items, list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    elif isinstance(items, dict):
        yield from _check(items, f"{path}.items", "items")
    if others is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if others and schema.get("properties"):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if isinstance(others, dict):
        yield from _check(others, f"{path}.additionalProperties", "field")
    for key, inner in (schema.get("properties") or {}).items():
        if level == "root" and key == "metadata":
            yield from _check_metadata(inner, f"{path}.properties[metadata]")
        else:
            yield from _check(inner, f"{path}.properties[{key}]", "field")


def _check_type(schema: Schema, path: str, level: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        words = "must be object if x-kubernetes-embedded-resource is true"
        yield (invalid(f"{path}.type", kind, words) if kind else required(f"{path}.type", words))
    elif schema.get("x-kubernetes-embedded-resource") and not (free or schema.get("properties")):
        words = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", words)
    elif not kind and not free:
        yield required(f"{path}.type", _NEEDS_TYPE[level])
    if kind == "array" and schema.get("items") is None:
        yield required(f"{path}.items", "must be specified")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")
    if kind and kind not in ("array", "boolean", "integer", "number", "object", "string"):
        if kind == "null":
            yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
        else:
            supported = ("array", "boolean", "integer", "number", "object", "string")
            yield not_supported(f"{path}.type", kind, supported)


def _check_default(value: Any, schema: Schema, path: str) -> Iterator[FieldError]:
    """Checks that a default is a value that the schema would accept, and keep."""
    unknown: list[str] = []
    copied = deep_copy({"default": value})
    prune(copied, {"type": "object", "properties": {"default": schema}}, unknown)
    if unknown:
        yield invalid(path, value, "must not have unknown fields")
    for error in validate(value, schema):
        inner = error.field if error.field.startswith("<") else f"{path}.{error.field}" if error.field else path
        yield error._replace(field=inner)


def _check_conditions(schema: Schema, path: str) -> Iterator[FieldError]:
    """Alternatives may restrict values, but types are said outside of them."""
    either = [{"type": "integer"}, {"type": "string"}]
    is_either = bool(schema.get("x-kubernetes-int-or-string"))
    for word in ("anyOf", "oneOf", "allOf"):
        alternatives = schema.get(word) or []
        if is_either and (alternatives == either or alternatives[:1] == [{"anyOf": either}]):
            continue
        for index, each in enumerate(alternatives):
            yield from _check_condition(each, f"{path}.{word}[{index}]")
    if isinstance(schema.get("not"), dict):
        yield from _check_condition(schema["not"], f"{path}.not")


def _check_condition(schema: Schema, path: str) -> Iterator[FieldError]:
    for word in ("type", "additionalProperties", "default", "nullable"):
        if schema.get(word):
            verb = "undefined" if word in ("additionalProperties", "default") else "empty"
            verb = "false" if word == "nullable" else verb
            yield forbidden(f"{path}.{word}", f"must be {verb} to be structural")
    for key, inner in (schema.get("properties") or {}).items():
        yield from _check_condition(inner, f"{path}.properties[{key}]")
    if isinstance(schema.get("items"), dict):
        yield from _check_condition(schema["items"], f"{path}.items")
    yield from _check_conditions(schema, path)


def _check_metadata(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get("type") != "object":
        yield invalid(f"{path}.type", schema.get("type") or "", "must be object")
    if set(schema.get("properties") or ()) - {"name", "generateName"}:
        words = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(path, words)


def _check_list_kind(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if kind is not None and kind not in ("atomic", "set", "map"):
        yield not_supported(f"{path}.x-kubernetes-list-type", kind, ("atomic", "set", "map"))
    if kind is not None and schema.get("type") != "array":
        yield invalid(f"{path}.type", schema.get("type") or "", "must be array if x-kubernetes-list-type is specified")
    if keys and kind != "map":
        words, where = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.x-kubernetes-list-type"
        yield invalid(where, kind, words) if kind else required(where, words)
    if kind != "map":
        return
    if not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    item = schema.get("items") or {}
    if not isinstance(item, dict):
        return
    properties = item.get("properties") or {}
    for key in keys or ():
        inner = f"{path}.items.properties[{key}]"
        if key not in properties:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties")
        elif key not in (item.get("required") or ()) and "default" not in properties[key]:
            words = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield required(f"{inner}.default", words)


def _check_rules(schema: Schema, path: str, *, is_root: bool) -> Iterator[FieldError]:
    rules = schema["x-kubernetes-validations"]
    expressions = [str(rule.get(key) or "") for rule in rules for key in ("rule", "messageExpression")]
    types = SchemaTypes(schema, expressions, is_root=is_root)
    for index, rule in enumerate(rules):
        inner = f"{path}.x-kubernetes-validations[{index}]"
        if not str(rule.get("rule") or "").strip():
            yield required(f"{inner}.rule", "rule is not specified")
            continue
        if "\n" in str(rule.get("message") or "").strip():
            yield invalid(f"{inner}.message", rule["message"], "must not contain line breaks")
        try:
            result = types.result(source_of(rule))
        except CelError as error:
            yield invalid(f"{inner}.rule", _rule_struct(rule), f"compilation failed: {error}")
        else:
            if result not in ("BOOL", "DYN"):
                yield invalid(f"{inner}.rule", _rule_struct(rule), "cel expression must evaluate to a bool")
        if rule.get("messageExpression"):
            try:
                if types.result(rule["messageExpression"]) not in ("STRING", "DYN"):
                    words = "messageExpression must evaluate to a string"
                    yield invalid(f"{inner}.messageExpression", _rule_struct(rule), words)
            except CelError as error:
                words = f"messageExpression compilation failed: {error}"
                yield invalid(f"{inner}.messageExpression", _rule_struct(rule), words)


def _rule_struct(rule: dict[str, Any]) -> Struct:
    return Struct(
        Rule=rule["rule"],
        Message=rule.get("message") or "",
        MessageExpression=rule.get("messageExpression") or "",
        Reason=rule.get("reason"),
        FieldPath=rule.get("fieldPath") or "",
        OptionalOldSelf=rule.get("optionalOldSelf"),
    )


def _check_pattern(pattern: str, path: str) -> Iterator[FieldError]:
    problem = problem_with(pattern)
    if problem:
        yield invalid(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {problem}")
