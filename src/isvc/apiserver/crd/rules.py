"""x-kubernetes-validations: CEL rules beside a schema, checked on the values that the schema describes.

A rule that mentions `oldSelf` is a transition rule: it is asked on updates only, where an old value is known. Other
rules are not asked again about a value that an update leaves as it is.
"""

from __future__ import annotations

from typing import Any, Final

from isvc.apiserver import field_errors
from isvc.apiserver.cel import CelError, Program, compile_expression
from isvc.apiserver.crd.validate import counterpart
from isvc.apiserver.crd.values import cel_value
from isvc.apiserver.field_errors import OMITTED
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import Object
from isvc.kube.schemas import Schema

_NONE: Final = object()
#: A rule with optionalOldSelf sees an optional, which the runtime can only make inside an expression.
_OPTIONAL = "cel.bind(oldSelf, variables.hasOld ? optional.of(variables.old) : optional.none(), ({}))"


class Rules:
    """All rules of a schema. Parts of the schema without any are found out once and skipped."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._any: dict[int, bool] = {}

    @property
    def exist(self) -> bool:
        return self._has_rules(self.schema)

    def check(self, obj: Object, old: Object | None = None) -> list[FieldError]:
        errors: list[FieldError] = []
        if self.exist:
            self._walk(obj, self.schema, "", _NONE if old is None else old, errors, is_root=True)
        return errors

    def _has_rules(self, schema: Schema) -> bool:
        known = self._any.get(id(schema))
        if known is None:
            children = [*(schema.get("properties") or {}).values(), schema.get("items")]
            children += [schema.get("additionalProperties"), *schema.get("allOf", ())]
            inside = [self._has_rules(each) for each in children if isinstance(each, dict)]
            known = self._any[id(schema)] = bool(schema.get("x-kubernetes-validations")) or any(inside)
        return known

    def _walk(
        self, value: Any, schema: Schema, path: str, old: Any, errors: list[FieldError], *, is_root: bool = False
    ) -> None:
        if value is None or not self._has_rules(schema):
            return
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
            for index, item in enumerate(value):
                before = counterpart(item, old, schema, _NONE)
                self._walk(item, schema["items"], f"{path}[{index}]", before, errors)

    def _walk_map(self, value: Object, schema: Schema, path: str, old: Any, errors: list[FieldError]) -> None:
        properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, item in value.items():
            before = old.get(key, _NONE) if isinstance(old, dict) else _NONE
            if key in properties:
                self._walk(item, properties[key], f"{path}.{key}" if path else key, before, errors)
            elif isinstance(others, dict):
                self._walk(item, others, f"{path}[{key}]", before, errors)


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
        return [field_errors.invalid(path or "<nil>", kind, words)]
    if verdict is True:
        return []
    shown = OMITTED if kind in ("object", "array") else value
    return [_complaint(_path(path, rule), shown, _message(rule, variables), rule.get("reason"))]


def _complaint(path: str, value: Any, words: str, reason: str | None) -> FieldError:
    match reason:
        case "FieldValueForbidden":
            return field_errors.forbidden(path, words)
        case "FieldValueRequired":
            return field_errors.required(path, words)
        case "FieldValueDuplicate":
            return field_errors.duplicate(path, value)
        case _:
            return field_errors.invalid(path, value, words)


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
