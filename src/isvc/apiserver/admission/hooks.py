"""Registered webhooks: which of them want to hear of a request, and in which version of the object."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from isvc.apiserver.cel import CelError, compile_expression
from isvc.apiserver.reader import Reader
from isvc.apiserver.request import AdmissionRequest
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, labels_of
from isvc.kube.resource import Resource
from isvc.kube.selectors import LabelSelector

OWN_GROUP = "admissionregistration.k8s.io"  # about which nobody is asked
DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class _Version(msgspec.Struct):
    name: str
    served: bool = False


class _Versions(msgspec.Struct):
    versions: list[_Version]


class _Definition(msgspec.Struct):
    spec: _Versions


_decode_versions: Final = msgspec.json.Decoder(_Definition).decode  # schemas take a hundred times as long


@dataclass(frozen=True)
class Hook:
    configuration: str
    index: int
    spec: Object

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def uid(self) -> str:
        return f"{self.configuration}/{self.index}"

    @property
    def timeout(self) -> float:
        return float(self.spec.get("timeoutSeconds") or 10)

    @property
    def ignores_failure(self) -> bool:
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def reinvocable(self) -> bool:
        return self.spec.get("reinvocationPolicy") == "IfNeeded"

    @property
    def equivalent(self) -> bool:
        return str(self.spec.get("matchPolicy") or "Equivalent") == "Equivalent"

    @property
    def allows_dry_run(self) -> bool:
        return self.spec.get("sideEffects") in ("None", "NoneOnDryRun")

    @cached_property
    def namespaces(self) -> LabelSelector | None:
        return _selector(self.spec.get("namespaceSelector"))

    @cached_property
    def objects(self) -> LabelSelector | None:
        return _selector(self.spec.get("objectSelector"))

    def matches_rules(self, resource: Resource, subresource: str, operation: str, name: str | None = None) -> bool:
        """Returns whether a rule names the resource, and the object where it lists names."""
        rules = [rule for rule in self.spec.get("rules") or () if name is None or _names(rule, name)]
        return any(_rule_matches(rule, resource, subresource, operation) for rule in rules)

    def names_group(self, group: str) -> bool:
        return any(_any_of(rule.get("apiGroups"), group) for rule in self.spec.get("rules") or ())

    def wants_labels(self, obj: Object | None, old: Object | None) -> bool:
        selector = self.objects
        if selector is None:
            return True
        return any(each is not None and selector.matches(labels_of(each)) for each in (obj, old))

    def wants_namespace(self, request: AdmissionRequest, obj: Object | None, namespace: Object | None) -> bool:
        """Returns whether the namespace's labels match.

        A namespace is judged by its own, cluster-wide objects always match.
        """
        selector = self.namespaces
        if selector is None:
            return True
        if str(request.description.resource) == "namespaces":
            found = namespace if request.operation == "DELETE" or obj is None else obj
            return selector.matches(labels_of(found or {}))
        if not request.namespace:
            return True
        if namespace is None:
            details = {"name": request.namespace, "kind": "namespaces"}
            raise NotFound(f'namespaces "{request.namespace}" not found', details=details)
        return selector.matches(labels_of(namespace))

    def wants_conditions(self, variables: Object) -> bool:
        """Returns whether every match condition holds.

        Raises CelError when one cannot be evaluated and none is false.
        """
        failure: CelError | None = None
        for condition in self.spec.get("matchConditions") or ():
            try:
                if compile_expression(condition["expression"]).evaluate(variables) is False:
                    return False
            except CelError as error:
                failure = error
        if failure:
            raise failure
        return True


def _selector(spec: Object | None) -> LabelSelector | None:
    return LabelSelector.from_spec(spec) if spec and (spec.get("matchLabels") or spec.get("matchExpressions")) else None


def _rule_matches(rule: Object, resource: Resource, subresource: str, operation: str) -> bool:
    return (
        _any_of(rule.get("operations"), operation)
        and _any_of(rule.get("apiGroups"), resource.group)
        and _any_of(rule.get("apiVersions"), resource.version)
        and _scope_matches(rule.get("scope") or "*", resource)
        and any(_resource_matches(each, resource.plural, subresource) for each in rule.get("resources") or ())
    )


def _names(rule: Object, name: str) -> bool:
    return not rule.get("resourceNames") or name in rule["resourceNames"]


def _any_of(wanted: list[str] | None, value: str) -> bool:
    return bool(wanted) and ("*" in (wanted or ()) or value in (wanted or ()))


def _scope_matches(scope: str, resource: Resource) -> bool:
    return scope == "*" or (scope == "Namespaced") == resource.namespaced


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    wanted, _, wanted_sub = pattern.partition("/")
    return wanted in ("*", plural) and wanted_sub in ((subresource,) if not subresource else ("*", subresource))


def wanted_version(
    reader: Reader, hook: Hook, resource: Resource, subresource: str, operation: str, name: str | None = None
) -> Resource | None:
    """Returns the resource itself or another served version of it that the rules name; None when they name neither."""
    if hook.matches_rules(resource, subresource, operation, name):
        return resource
    if not hook.equivalent or not hook.names_group(resource.group):
        return None
    others = _equivalents(reader, resource)
    return next((each for each in others if hook.matches_rules(each, subresource, operation, name)), None)


async def in_version(
    resource: Resource, request: AdmissionRequest, obj: Object | None, old: Object | None
) -> tuple[Object | None, Object | None]:
    if resource == request.description.resource:
        return obj, old
    present = [each for each in (obj, old) if each is not None]
    converted = iter(await request.description.strategy.convert(present, resource.api_version))
    return (None if obj is None else next(converted)), (None if old is None else next(converted))


def _equivalents(reader: Reader, resource: Resource) -> list[Resource]:
    """Returns other served versions of a custom resource."""
    raw = reader.raw(DEFINITIONS, str(resource))
    versions = _decode_versions(raw).spec.versions if raw else []
    others = [each.name for each in versions if each.served and each.name != resource.version]
    return [resource._replace(version=each) for each in others]
