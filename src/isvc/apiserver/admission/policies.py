"""ValidatingAdmissionPolicies and their bindings: rules in CEL that users register instead of a webhook.

A policy counts where a binding names it. Of several refusals the first one is reported. Known differences from
kube-apiserver: `authorizer` has no value, expressions are not limited in cost, and a variable that cannot be evaluated
is missing from `variables`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from isvc.apiserver.admission.hooks import DEFINITIONS, OWN_GROUP, Hook, in_version, wanted_version
from isvc.apiserver.admission.plugins.plugin import forbidden
from isvc.apiserver.admission.review import review_of
from isvc.apiserver.cel import CelError, compile_expression
from isvc.apiserver.reader import Reader
from isvc.apiserver.request import AdmissionRequest
from isvc.apiserver.resources.registry import Registry
from isvc.kube.errors import ApiError, from_status
from isvc.kube.objects import Object, dig, labels_of, name_of
from isvc.kube.resource import Resource
from isvc.kube.selectors import LabelSelector

_POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
_BINDINGS = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413}


class _Denial(NamedTuple):
    message: str
    reason: str = "Invalid"


class _Misconfigured(Exception):
    """The binding's parameters cannot be had."""


class _Bound(NamedTuple):
    """A policy and a binding of it, with what either says about the requests that it is about."""

    policy: Object
    binding: Object
    hooks: tuple[Hook, Hook | None]
    excluded: tuple[Hook, ...]

    @property
    def title(self) -> str:
        return f"ValidatingAdmissionPolicy '{name_of(self.policy)}' with binding '{name_of(self.binding)}'"

    @property
    def ignores_failure(self) -> bool:
        return bool(self.policy["spec"].get("failurePolicy") == "Ignore")


class Policies:
    def __init__(self, reader: Reader, registry: Registry) -> None:
        self._reader = reader
        self._registry = registry
        self._revision: tuple[int, ...] = ()
        self._bound: list[_Bound] = []

    async def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        """Raises the first denial of a policy; warns of those that are only to be warned of."""
        revision = tuple(map(self._reader.revision, (_POLICIES, _BINDINGS, DEFINITIONS)))
        if revision != self._revision:
            self._revision, self._bound = revision, list(self._read())
        if not self._bound or request.description.resource.group == OWN_GROUP:
            return
        refusals = []
        for bound in self._bound:
            actions = bound.binding["spec"].get("validationActions") or ()
            for denial in await self._denials(bound, request, obj, old):
                if "Warn" in actions:
                    request.warnings.append(f"Validation failed for {bound.title}: {denial.message}")
                if "Deny" in actions:
                    refusals.append(_refusal(request, obj or old, bound, denial))
        if refusals:
            raise refusals[0]

    def _read(self) -> Iterator[_Bound]:
        policies = {each["metadata"]["name"]: each for each in self._reader.list(_POLICIES)}
        for binding in self._reader.list(_BINDINGS):
            policy = policies.get(binding["spec"].get("policyName", ""))
            if policy is None:
                continue
            own, narrower = policy["spec"].get("matchConstraints") or {}, binding["spec"].get("matchResources")
            hooks = _hook(own, "resourceRules"), _hook(narrower, "resourceRules") if narrower else None
            excluded = tuple(
                _hook(each, "excludeResourceRules")
                for each in (own, narrower)
                if (each or {}).get("excludeResourceRules")
            )
            yield _Bound(policy, binding, hooks, excluded)

    async def _denials(
        self, bound: _Bound, request: AdmissionRequest, obj: Object | None, old: Object | None
    ) -> list[_Denial]:
        version = self._version(bound, request)
        if version is None:
            return []
        namespace = self._reader.get("namespaces", request.namespace) if request.namespace else None
        for hook in filter(None, bound.hooks):
            if not hook.wants_labels(obj, old) or not hook.wants_namespace(request, obj, namespace):
                return []
        try:
            parameters = self._parameters(bound, request.namespace)
        except _Misconfigured as error:
            return [] if bound.ignores_failure else [_Denial(f"failed to configure binding: {error}")]
        seen, seen_old = await in_version(version, request, obj, old)
        asked = review_of(request, seen, seen_old, version)["request"]
        variables = {"object": seen, "oldObject": seen_old, "request": asked, "namespaceObject": namespace}
        return [denial for each in parameters for denial in _evaluate(bound, {**variables, "params": each})]

    def _version(self, bound: _Bound, request: AdmissionRequest) -> Resource | None:
        """Returns the version in which the policy wants to see objects; None when this is no request of its kind."""

        def find_version(hook: Hook) -> Resource | None:
            resource, sub = request.description.resource, request.subresource
            return wanted_version(self._reader, hook, resource, sub, request.operation, request.name)

        policy, binding = bound.hooks
        narrowed = binding is not None and binding.spec.get("rules") and not find_version(binding)
        return None if narrowed or any(map(find_version, bound.excluded)) else find_version(policy)

    def _parameters(self, bound: _Bound, namespace: str) -> list[Object | None]:
        """Returns the objects that the binding passes to the policy, one evaluation each."""
        kind, reference = bound.policy["spec"].get("paramKind"), bound.binding["spec"].get("paramRef")
        if not kind or not reference:
            return [None]
        found = [
            each
            for each in self._registry
            if each.gvk.api_version == kind.get("apiVersion") and each.gvk.kind == kind.get("kind")
        ]
        if not found:
            shown = f"{kind.get('apiVersion', '')}, Kind={kind.get('kind', '')}"
            raise _Misconfigured(f"paramKind kind `{shown}` not known")
        namespaced = found[0].resource.namespaced
        where = (reference.get("namespace") or namespace) if namespaced else ""
        if namespaced and not where:
            words = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise _Misconfigured(words)
        if reference.get("name"):
            one = self._reader.get(found[0].collection, reference["name"], where)
            parameters: list[Object | None] = [one] if one else []
        else:
            selector = LabelSelector.from_spec(reference.get("selector") or {})
            listed = self._reader.list(found[0].collection, where)
            parameters = [each for each in listed if selector.matches(labels_of(each))]
        if not parameters and reference.get("parameterNotFoundAction") == "Deny":
            raise _Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
        return parameters


def _hook(matched: Object | None, rules: str) -> Hook:
    spec = matched or {}
    return Hook("", 0, {**spec, "rules": spec.get(rules)})


def _evaluate(bound: _Bound, values: Mapping[str, Any]) -> Iterator[_Denial]:
    spec = bound.policy["spec"]
    conditions = Hook("", 0, {"matchConditions": spec.get("matchConditions")})
    variables: dict[str, Any] = {**values, "variables": {}}
    try:
        if not conditions.wants_conditions(variables):
            return
    except CelError as error:
        if not bound.ignores_failure:
            yield _Denial(str(error))
        return
    for each in spec.get("variables") or ():
        try:
            variables["variables"][each["name"]] = compile_expression(each["expression"]).evaluate(variables)
        except CelError:
            continue
    for validation in spec.get("validations") or ():
        expression = validation["expression"]
        try:
            holds = compile_expression(expression).evaluate(variables)
        except CelError as error:
            if not bound.ignores_failure:
                yield _Denial(f"expression '{expression}' resulted in error: {error}")
            continue
        if holds is not True:
            yield _Denial(_message(validation, variables), validation.get("reason") or "Invalid")


def _message(validation: Object, variables: Mapping[str, Any]) -> str:
    message = ""
    if source := validation.get("messageExpression"):
        try:
            message = str(compile_expression(source).evaluate(variables)).strip()
        except CelError:
            message = ""
    if not message or "\n" in message:
        message = (validation.get("message") or "").strip()
    return message or f"failed expression: {validation['expression'].strip()}"


def _refusal(request: AdmissionRequest, obj: Object | None, bound: _Bound, denial: _Denial) -> ApiError:
    message = f"{bound.title} denied request: {denial.message}"
    plain = forbidden(request, obj, message)
    status = {
        "message": plain.message,
        "reason": denial.reason,
        "details": {**(dig(plain.status(), "details") or {}), "causes": [{"message": message}]},
    }
    return from_status(_CODES.get(denial.reason, 422), status)
