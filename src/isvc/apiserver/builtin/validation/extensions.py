"""Validates what extends admission: webhook configurations, and policies in CEL with their bindings."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from isvc.apiserver.builtin.validation.checks import Errors, one_of, selector
from isvc.apiserver.cel import CelError, compile_expression
from isvc.apiserver.field_errors import invalid, required
from isvc.apiserver.objects import names
from isvc.kube.objects import Object

_ONE = "validations or auditAnnotations must contain at least one item"
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_ONLY = {"operations": "operations", "apiGroups": "API groups", "apiVersions": "API versions"}
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


def webhooks(obj: Object) -> Errors:
    for index, hook in enumerate(obj.get("webhooks") or ()):
        yield from _webhook(f"webhooks[{index}]", hook)


def _webhook(path: str, hook: Object) -> Errors:
    name = hook.get("name") or ""
    problems = names.subdomain(name)
    if not problems and len(name.split(".")) < 3:
        problems = ["should be a domain with at least three segments separated by dots"]
    for words in problems:
        yield invalid(f"{path}.name", name, words)
    versions = hook.get("admissionReviewVersions")
    if not versions:
        yield required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
    elif not {"v1", "v1beta1"} & set(versions):
        yield invalid(f"{path}.admissionReviewVersions", versions, "must include at least one of v1, v1beta1")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from _rule(f"{path}.rules[{index}]", rule)
    yield from one_of(f"{path}.failurePolicy", hook["failurePolicy"], ("Fail", "Ignore"))
    yield from one_of(f"{path}.matchPolicy", hook["matchPolicy"], ("Equivalent", "Exact"))
    effects = hook.get("sideEffects")
    if effects is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from one_of(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    if not 1 <= hook["timeoutSeconds"] <= 30:
        words = "the timeout value must be between 1 and 30 seconds"
        yield invalid(f"{path}.timeoutSeconds", hook["timeoutSeconds"], words)
    for key in ("namespaceSelector", "objectSelector"):
        yield from selector(f"{path}.{key}", hook.get(key))
    yield from _client(f"{path}.clientConfig", hook["clientConfig"])
    for index, condition in enumerate(hook.get("matchConditions") or ()):
        try:
            compile_expression(condition.get("expression") or "")
        except CelError as error:
            inner = f"{path}.matchConditions[{index}].expression"
            yield invalid(inner, condition.get("expression"), f"compilation failed: {error}")


def _client(path: str, client: Object) -> Errors:
    if ("url" in client) == ("service" in client):
        yield required(path, "exactly one of url or service is required")
    elif "url" in client:
        scheme = urlsplit(client["url"]).scheme
        if scheme != "https":
            words = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
            yield invalid(f"{path}.url", scheme, words)
    else:
        for key in ("name", "namespace"):
            if not client["service"].get(key):
                yield required(f"{path}.service.{key}", f"service {key} is required")


def _rule(path: str, rule: Object) -> Errors:
    for key, words in _ONLY.items():
        values = rule.get(key)
        if not values:
            yield required(f"{path}.{key}")
        elif "*" in values and len(values) > 1:
            yield invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {words}")
        elif key == "operations":
            for index, each in enumerate(values):
                yield from one_of(f"{path}.operations[{index}]", each, _OPERATIONS)
    resources = rule.get("resources")
    if not resources:
        yield required(f"{path}.resources")
    elif "*" in resources and any("/" not in each for each in resources if each != "*"):
        words = "if '*' is present, must not specify other resources without subresources"
        yield invalid(f"{path}.resources", resources, words)
    yield from one_of(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))
