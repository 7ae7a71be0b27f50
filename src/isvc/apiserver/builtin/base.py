"""What all built-in kinds share: the shape of their Go struct, then defaults, then rules."""

from __future__ import annotations

from functools import cached_property

from isvc.apiserver.builtin.shape import shape
from isvc.apiserver.builtin.types import Message, message_of
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

    def default(self, obj: Object) -> None:
        """Fills in what was left out, in place."""
