"""What all built-in kinds share: the shape of their Go struct, then defaults, then rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from isvc.apiserver.builtin.conversion import convert
from isvc.apiserver.builtin.prepare import ON_CREATE, ON_UPDATE
from isvc.apiserver.builtin.validation import CHANGES, CHECKS, STATUS_CHECKS
from isvc.apiserver.strategy import FieldError, Strategy
from isvc.kube.builtin.defaults import DEFAULTS, Default
from isvc.kube.builtin.shape import shape
from isvc.kube.builtin.types import Message, message_of, zero
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.kube.schemas import schema_of

_WITH_GENERATION = frozenset({
    "CronJob", "CustomResourceDefinition", "DaemonSet", "Deployment", "EndpointSlice", "Ingress", "IngressClass", "Job",
    "MutatingWebhookConfiguration", "NetworkPolicy", "Pod", "PodDisruptionBudget", "PriorityClass", "ReplicaSet",
    "ReplicationController", "StatefulSet", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
})  # fmt: skip
_CREATED_BY_UPDATE = frozenset({
    "ClusterRole", "ClusterRoleBinding", "Endpoints", "Event", "Lease", "LimitRange", "Role", "RoleBinding", "Service",
})  # fmt: skip
_VERSION_REQUIRED = frozenset({
    "CSIDriver", "CustomResourceDefinition", "Lease", "MutatingWebhookConfiguration", "PodDisruptionBudget",
    "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
})  # fmt: skip


class BuiltIn(Strategy):
    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.generation = resource.kind in _WITH_GENERATION
        self.create_on_update = resource.kind in _CREATED_BY_UPDATE
        self.unconditional_update = resource.kind not in _VERSION_REQUIRED
        self.created_with_status = resource.kind == "Node"
        self.default_grace_seconds = 30 if resource.kind == "Pod" else 0

    @cached_property
    def schema(self) -> Object | None:  # type: ignore[override]
        return schema_of(self.resource.gvk)

    @cached_property
    def message(self) -> Message | None:
        return message_of(self.resource.gvk)

    @cached_property
    def blank(self) -> Object | None:
        gvk = self.resource.gvk
        if self.message is None:
            return None
        shown = {field.name: zero(field) for field in self.message.always}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, **shown}

    def decode(self, obj: Object, unknown: list[str]) -> Object:
        if self.message is None:
            return obj
        shaped = shape(obj, self.message, unknown)
        self.default(shaped)
        return shaped

    def prepare_for_create(self, obj: Object) -> None:
        for field in self.message.always if self.message else ():
            if field.name not in obj:
                obj[field.name] = zero(field)
        self._forget_empty(obj)
        prepare = ON_CREATE.get((self.resource.group, self.resource.kind))
        if prepare:
            prepare(obj)

    def _forget_empty(self, obj: Object) -> None:
        """Kubernetes stores an empty list that it always shows as none."""
        for field in self.message.always if self.message else ():
            if field.containers and not obj.get(field.name):
                obj[field.name] = None

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        self._forget_empty(new)
        prepare = ON_UPDATE.get((self.resource.group, self.resource.kind))
        if prepare and not subresource:
            prepare(new, old)

    def validate_create(self, obj: Object) -> Sequence[FieldError]:
        check = CHECKS.get((self.resource.group, self.resource.kind))
        return list(check(obj)) if check else ()

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        if subresource in ("status", "binding"):
            check = STATUS_CHECKS.get((self.resource.group, self.resource.kind)) if subresource == "status" else None
            return list(check(new)) if check else ()
        change = CHANGES.get((self.resource.group, self.resource.kind))
        return [*self.validate_create(new), *(change(new, old) if change else ())]

    async def convert(self, objects: list[Object], api_version: str) -> list[Object]:
        return [convert(each, api_version) for each in objects]

    @cached_property
    def _default(self) -> Default | None:
        return DEFAULTS.get((self.resource.group, self.resource.kind))

    def default(self, obj: Object) -> None:
        """Fills in what was left out, in place."""
        if self._default:
            self._default(obj)
