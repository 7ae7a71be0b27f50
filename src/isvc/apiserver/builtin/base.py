"""What all built-in kinds share: the shape of their Go struct, then defaults, then rules, as their record says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from isvc.apiserver.addresses import ServiceAddresses
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.crd.claimed_names import ClaimedNames
from isvc.apiserver.request import User
from isvc.apiserver.resources.strategy import FieldError, Strategy
from isvc.apiserver.store.store import Store
from isvc.kube.builtin.defaults import DEFAULTS, Default
from isvc.kube.builtin.shape import shape
from isvc.kube.builtin.types import Message, message_of, zero
from isvc.kube.objects import Object
from isvc.kube.schemas import schema_of


@dataclass(frozen=True)
class Claims:
    """Values that no two objects may share (addresses, ports, names of kinds), for strategies that hand them out."""

    addresses: ServiceAddresses = field(default_factory=ServiceAddresses)
    names: ClaimedNames = field(default_factory=ClaimedNames)

    def follow(self, store: Store) -> None:
        self.addresses.follow(store)
        self.names.follow(store)


class BuiltIn(Strategy):
    def __init__(self, kind: Kind, claims: Claims) -> None:
        self.kind = kind
        self.claims = claims
        self.resource = kind.resource
        self.generation = kind.generation
        self.create_on_update = kind.created_by_update
        self.unconditional_update = not kind.version_required
        self.created_with_status = kind.created_with_status
        self.default_propagation = kind.propagation

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
        shown = {each.name: zero(each) for each in self.message.always}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, **shown}

    def decode(self, obj: Object, unknown: list[str]) -> Object:
        if self.message is None:
            return obj
        shaped = shape(obj, self.message, unknown)
        self.default(shaped)
        return shaped

    def prepare_for_create(self, obj: Object, user: User) -> None:
        for each in self.message.always if self.message else ():
            if each.name not in obj:
                obj[each.name] = zero(each)
        self._drop_empty(obj)
        if self.kind.on_create:
            self.kind.on_create(obj)

    def _drop_empty(self, obj: Object) -> None:
        """Kubernetes stores an empty list that it always shows as none."""
        for each in self.message.always if self.message else ():
            if each.containers and not obj.get(each.name):
                obj[each.name] = None

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        self._drop_empty(new)
        if self.kind.on_update and not subresource:
            self.kind.on_update(new, old)

    def validate_create(self, obj: Object) -> Sequence[FieldError]:
        return self.validate(obj)

    def validate(self, obj: Object) -> Sequence[FieldError]:
        """Returns what is wrong with an object whether it is new or not."""
        return list(self.kind.check(obj)) if self.kind.check else ()

    def validate_update(self, new: Object, old: Object, subresource: str) -> Sequence[FieldError]:
        if subresource == "status":
            return list(self.kind.check_status(new)) if self.kind.check_status else ()
        change = self.kind.check_update
        return [*self.validate(new), *(change(new, old) if change else ())]

    def warnings(self, obj: Object, old: Object | None) -> Sequence[str]:
        return list(self.kind.warn(obj, old)) if self.kind.warn else ()

    async def convert(self, objects: list[Object], api_version: str) -> list[Object]:
        convert = self.kind.convert
        if convert is None:
            return await super().convert(objects, api_version)
        return [each if each.get("apiVersion") == api_version else convert(each, api_version) for each in objects]

    @cached_property
    def _default(self) -> Default | None:
        return DEFAULTS.get((self.resource.group, self.resource.kind))

    def default(self, obj: Object) -> None:
        """Fills in what was left out, in place."""
        if self._default:
            self._default(obj)
