"""Validates ValidatingAdmissionPolicies and their bindings: required fields, and CEL that compiles."""

from __future__ import annotations

from collections.abc import Iterator

from isvc.apiserver.builtin.validation.checks import Errors, one_of
from isvc.apiserver.cel import CelError, compile_expression
from isvc.apiserver.field_errors import invalid, required
from isvc.kube.objects import Object

_ONE = "validations or auditAnnotations must contain at least one item"
_ACTIONS = ("Audit", "Deny", "Warn")


def policy(obj: Object) -> Errors:
    spec = obj.get("spec") or {}
    if spec.get("matchConstraints") is None:
        yield required("spec.matchConstraints")
    elif not spec["matchConstraints"].get("resourceRules"):
        yield required("spec.matchConstraints.resourceRules")
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        yield required("spec.validations", _ONE)
        yield required("spec.auditAnnotations", _ONE)
    for path, expression in _expressions(spec):
        if not expression.strip():
            yield required(path, "expression is not specified")
            continue
        try:
            compile_expression(expression)
        except CelError as error:
            yield invalid(path, expression, f"compilation failed: {error}")


def binding(obj: Object) -> Errors:
    spec = obj.get("spec") or {}
    if not spec.get("policyName"):
        yield required("spec.policyName")
    actions = spec.get("validationActions") or ()
    if not actions:
        yield required("spec.validationActions", "at least one validation action is required")
    for index, action in enumerate(actions):
        yield from one_of(f"spec.validationActions[{index}]", action, _ACTIONS)
    if "Deny" in actions and "Warn" in actions:
        why = "must not contain both Deny and Warn (repeating the same validation failure information in the API"
        yield invalid("spec.validationActions", actions, f"{why} response and headers serves no purpose)")


def _expressions(spec: Object) -> Iterator[tuple[str, str]]:
    for field in ("matchConditions", "variables", "validations"):
        for index, each in enumerate(spec.get(field) or ()):
            yield f"spec.{field}[{index}].expression", each.get("expression") or ""
            if each.get("messageExpression"):
                yield f"spec.{field}[{index}].messageExpression", each["messageExpression"]
