"""The words our kinds are written with: what a field's type says beyond what Python can say.

A field's type tells msgspec how to decode it. What it says on top (`Required`, `Schema`, `Inline`) is read only when
CRDs are generated: decoding stays as lenient as KServe's own, which fills zero values where the CRD asks for more.
A field's docstring becomes its description in `kubectl explain`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypeVar, dataclass_transform

import msgspec

from isvc.kube.objects import Object

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A part of a kind. Immutable; attributes are snake_case, wire names camelCase."""


class Schema:
    """Attributes of the field's OpenAPI schema, for what the API server checks and we do not."""

    def __init__(self, **attributes: Any) -> None:
        self.attributes = attributes


@dataclass(frozen=True, slots=True)
class Inline:
    """The field holds whatever its struct does not name: fields of a built-in type, written beside our own.

    `only` narrows the CRD to those fields of `definition`; `required` are the ones the CRD asks for; `plain` are lists
    and maps whose merge keys KServe's CRDs leave out, and with them the rule that keys are unique.
    """

    definition: str
    only: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Definition:
    """The field is an open dict whose CRD schema is that of a type we did not write."""

    name: str
    required: tuple[str, ...] | None = None


class Templated:
    """Parts of the field, as dotted paths, in which a string may be a template: the CRD does not look at its form."""

    def __init__(self, *paths: str) -> None:
        self.paths = paths


REQUIRED = object()  # the CRD asks for this field
LOOSE = object()  # it asks for none of the fields below, as KServe's does where its defaulter fills them
SCHEMALESS = object()  # it says nothing about this field: its type contains itself, and schemas cannot
Required = Annotated[T, REQUIRED]
Loose = Annotated[T, LOOSE]


def zero(kind: Callable[[], T]) -> T:
    """Returns the default of a required field: its zero value, which encoding writes down even so."""
    default: T = msgspec.field(default_factory=kind)
    return default


def rules(*pairs: tuple[str, str]) -> Schema:
    """Returns CEL rules with their messages."""
    return Schema(**{"x-kubernetes-validations": [{"message": message, "rule": rule} for rule, message in pairs]})


Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1), Schema(format="int32")]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1), Schema(format="int64")]
Int: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

INT_OR_STRING: dict[str, Any] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
IntOrString: TypeAlias = Annotated[int | str, Schema(**INT_OR_STRING)]
Quantity: TypeAlias = Annotated[int | float | str, Schema(**INT_OR_STRING, pattern=QUANTITY_PATTERN)]
Timestamp: TypeAlias = Annotated[str, Schema(format="date-time")]

OpenObject: TypeAlias = Annotated[Any, Schema(type="object", **{"x-kubernetes-preserve-unknown-fields": True})]
"""An object that is passed on as it is. Whether it is one is left to the CRD, which refuses what is not."""

PodSpec: TypeAlias = Annotated[Object, Definition("io.k8s.api.core.v1.PodSpec")]
Container: TypeAlias = Annotated[Object, Definition("io.k8s.api.core.v1.Container")]
LocalObjectReference: TypeAlias = Annotated[Object, Definition("io.k8s.api.core.v1.LocalObjectReference")]

ATOMIC = Schema(**{"x-kubernetes-list-type": "atomic"})
