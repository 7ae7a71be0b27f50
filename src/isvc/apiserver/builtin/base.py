"""What all built-in kinds share: the shape of their Go struct, then defaults, then rules."""

from __future__ import annotations

from functools import cached_property

from isvc.apiserver.builtin.conversion import convert
from isvc.apiserver.builtin.defaults import DEFAULTS, Default
from isvc.apiserver.builtin.prepare import ON_CREATE
from isvc.apiserver.builtin.shape import shape
from isvc.apiserver.builtin.types import Message, message_of, zero
from isvc.apiserver.strategy import Strategy
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.kube.schemas import schema_of


class BuiltIn(Strategy):
    def __init__(self, resource: Resource) -> None:
        self.resource = resource

    @cached_property
    def schema(self) -> Object | None:  # type: ignore[override]
        return schema_of(self.resource.gvk)

    @cached_property
    def message(self) -> Message | None:
        return message_of(self.resource.gvk)

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
        prepare = ON_CREATE.get((self.resource.group, self.resource.kind))
        if prepare:
            prepare(obj)

    async def convert(self, objects: list[Object], api_version: str) -> list[Object]:
        return [convert(each, api_version) for each in objects]

    @cached_property
    def _default(self) -> Default | None:
        return DEFAULTS.get((self.resource.group, self.resource.kind))

    def default(self, obj: Object) -> None:
        """Fills in what was left out, in place."""
        if self._default:
            self._default(obj)
