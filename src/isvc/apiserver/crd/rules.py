"""x-kubernetes-validations: CEL rules beside a schema, checked on the values that the schema describes.

A rule that mentions `oldSelf` is a transition rule: it is asked on updates only, where an old value is known. Other
rules are not asked again about a value that an update leaves as it is, nor about one that they were content with not
long ago: objects of one kind have much in common.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from isvc.apiserver.cel import CelError, Program, compile_expression, mentions_old
from isvc.apiserver.crd.validate import by_identity, identity_of
from isvc.apiserver.crd.values import cel_value
from isvc.apiserver.field_errors import OMITTED, duplicate, forbidden, invalid, required
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import Object
from isvc.kube.schemas import Schema
from isvc.wire.bounded import Bounded

_NONE: Final = object()
_MOST_REMEMBERED: Final = 1024
_LARGEST_REMEMBERED: Final = 512  # bytes
#: A rule with optionalOldSelf sees an optional, which the runtime can only make inside an expression.
_OPTIONAL = "cel.bind(oldSelf, variables.hasOld ? optional.of(variables.old) : optional.none(), ({}))"


class _Inside(NamedTuple):
    """Which rules there are in a part of a schema."""

    any: bool
    transitions: bool


_NOTHING, _RULES, _TRANSITIONS = _Inside(False, False), _Inside(True, False), _Inside(True, True)


class Rules:
    """All rules of a schema. Parts of the schema without any are found out once and skipped."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._inside: dict[int, _Inside] = {}
        #: Parts of the schema, and values that keep their rules.
        self._content: Bounded[tuple[int, bytes], None] = Bounded(_MOST_REMEMBERED)

    @property
    def exist(self) -> bool:
        return self._rules_in(self.schema).any

    def check(self, obj: Object, old: Object | None = None) -> list[FieldError]:
        errors: list[FieldError] = []
        if self.exist:
            self._walk(obj, self.schema, "", _NONE if old is None else old, errors, is_root=True)
        return errors

    def _rules_in(self, schema: Schema) -> _Inside:
        known = self._inside.get(id(schema))
        if known is None:
            children = [*(schema.get("properties") or {}).values(), schema.get("items")]
            children += [schema.get("additionalProperties"), *schema.get("allOf", ())]
            inside = [self._rules_in(each) for each in children if isinstance(each, dict)]
            own = schema.get("x-kubernetes-validations") or ()
            if any(each.transitions for each in inside) or any(mentions_old(source_of(rule)) for rule in own):
                known = _TRANSITIONS
            else:
                known = _RULES if own or any(each.any for each in inside) else _NOTHING
            self._inside[id(schema)] = known
        return known

    def _walk(
        self, value: Any, schema: Schema, path: str, old: Any, errors: list[FieldError], *, is_root: bool = False
    ) -> None:
        inside = self._rules_in(schema)
        if value is None or not inside.any:
            return
        if inside.transitions or is_root:
            self._ask(value, schema, path, old, errors, is_root=is_root)
            return
        if old is not _NONE and value == old:
            return
        key = _key(schema, value)
        if key in self._content:
            return
        before = len(errors)
        self._ask(value, schema, path, old, errors, is_root=is_root)
        if key is not None and len(errors) == before:
            self._content[key] = None

    def _ask(self, value: Any, schema: Schema, path: str, old: Any, errors: list[FieldError], *, is_root: bool) -> None:
        rules = schema.get("x-kubernetes-validations")
        if rules:
            errors += _check_rules(value, schema, rules, path, old, is_root=is_root)
        for each in schema.get("allOf", ()):
            nested = each.get("x-kubernetes-validations")
            if nested:
                errors += _check_rules(value, schema, nested, path, old, is_root=is_root)
        if isinstance(value, dict):
            self._walk_map(value, schema, path, old, errors)
        elif isinstance(value, list) and isinstance(schema.get("items"), dict):
            known = by_identity(old, schema)
            for index, item in enumerate(value):
                before = known.get(identity_of(item, schema), _NONE) if known else _NONE
                self._walk(item, schema["items"], f"{path}[{index}]", before, errors)

    def _walk_map(self, value: Object, schema: Schema, path: str, old: Any, errors: list[FieldError]) -> None:
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            before = old.get(key, _NONE) if isinstance(old, dict) else _NONE
            if key in properties:
                self._walk(item, properties[key], f"{path}.{key}" if path else key, before, errors)
            elif isinstance(others, dict):
                self._walk(item, others, f"{path}[{key}]", before, errors)


def _key(schema: Schema, value: Any) -> tuple[int, bytes] | None:
    """Returns what a value of a part of the schema is remembered by; None for one that is too large."""
    try:
        text = orjson.dumps(value)
    except orjson.JSONEncodeError:
        return None
    # orjson leaves the unused rest of its buffer behind the bytes, seven times as much as they are: copy.
    return (id(schema), bytes(memoryview(text))) if len(text) <= _LARGEST_REMEMBERED else None


def program_of(rule: Object) -> Program:
    """Returns the compiled rule; raises CelError."""
    return compile_expression(source_of(rule))


def source_of(rule: Object) -> str:
    return str(_OPTIONAL.format(rule["rule"]) if rule.get("optionalOldSelf") else rule["rule"])


def _check_rules(
    value: Any, schema: Schema, rules: list[Object], path: str, old: Any, *, is_root: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    variables: dict[str, Any] | None = None
    unchanged = old is not _NONE and value == old
    for rule in rules:
        program = program_of(rule)
        uses_old = program.uses_old
        if (uses_old and old in (_NONE, None) and not rule.get("optionalOldSelf")) or (unchanged and not uses_old):
            continue
        if variables is None:
            variables = _variables(value, schema, old, is_root=is_root)
        errors += _check_rule(value, schema, rule, program, variables, path)
    return errors


def _variables(value: Any, schema: Schema, old: Any, *, is_root: bool) -> dict[str, Any]:
    before = None if old is _NONE else cel_value(old, schema, is_root=is_root)
    known = {"hasOld": old is not _NONE and old is not None, "old": before}
    return {"self": cel_value(value, schema, is_root=is_root), "oldSelf": before, "variables": known}


def _check_rule(
    value: Any, schema: Schema, rule: Object, program: Program, variables: dict[str, Any], path: str
) -> list[FieldError]:
    kind = schema.get("type", "")
    try:
        verdict = program.evaluate(variables)
    except CelError as error:
        words = f"{error} evaluating rule: {_words(rule)}"
        if str(error).startswith("no such overload"):
            words = (
                f"'{error}': call arguments did not match a supported operator, function or macro signature"
                f" for rule: {_words(rule)}"
            )
        return [invalid(path or "<nil>", kind, words)]
    if verdict is True:
        return []
    shown = OMITTED if kind in ("object", "array") else value
    return [_complaint(_path(path, rule), shown, _message(rule, variables), rule.get("reason"))]


def _complaint(path: str, value: Any, words: str, reason: str | None) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return forbidden(path, words)
        case "FieldValueRequired":
            return required(path, words)
        case "FieldValueDuplicate":
            return duplicate(path, value)
        case _:
            return invalid(path, value, words)


def _path(path: str, rule: Object) -> str:
    inner = str(rule.get("fieldPath") or "").removeprefix(".").replace("['", "[").replace("']", "]")
    if inner and path:
        return f"{path}.{inner}"
    return inner or path or "<nil>"


def _message(rule: Object, variables: dict[str, Any]) -> str:
    if rule.get("messageExpression"):
        try:
            words = compile_expression(rule["messageExpression"]).evaluate(variables)
        except CelError:
            words = None
        if isinstance(words, str) and words.strip() and "\n" not in words.strip():
            return words.strip()
    message = str(rule.get("message") or "").strip()
    return message or f"failed rule: {str(rule['rule']).strip()}"


def _words(rule: Object) -> str:
    return str(rule.get("message") or rule["rule"]).strip()
