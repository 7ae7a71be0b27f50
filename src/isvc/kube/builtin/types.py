"""Kubernetes' built-in types as Go declares them: which zero values JSON shows, and protobuf's field numbers.

OpenAPI knows neither. The facts come from the struct tags of the Go API (`tools/kubernetes-types` writes the package
data); a type is compiled when it is first asked for, so starting up costs nothing.
"""

from __future__ import annotations

import gzip
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import orjson

from isvc.kube.objects import GVK
from isvc.kube.schemas import definition_name, kinds

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
TIME, MICRO_TIME, DURATION = META + "Time", META + "MicroTime", META + "Duration"
FIELDS = META + "FieldsV1"
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
RAW = "io.k8s.apimachinery.pkg.runtime.RawExtension"
JSON = EXTENSIONS + "JSON"
PROPS = EXTENSIONS + "JSONSchemaProps"
PROPS_OR_ARRAY = EXTENSIONS + "JSONSchemaPropsOrArray"
PROPS_OR_BOOL = EXTENSIONS + "JSONSchemaPropsOrBool"
PROPS_OR_STRINGS = EXTENSIONS + "JSONSchemaPropsOrStringArray"
SCALARS = frozenset({"string", "bool", "int32", "int64", "float64", "bytes"})
#: Types whose JSON is not an object of their fields.
OPAQUE = frozenset(
    {TIME, MICRO_TIME, DURATION, FIELDS, QUANTITY, INT_OR_STRING, RAW, JSON}
    | {PROPS_OR_ARRAY, PROPS_OR_BOOL, PROPS_OR_STRINGS}
)


class Field(NamedTuple):
    number: int
    name: str  # empty for an embedded struct, whose fields appear beside the others
    kind: str  # a scalar or a definition, under the containers
    containers: str  # "", "[]", "{}", "{}[]"
    pointer: bool
    omit_empty: bool
    omit_zero: bool

    @property
    def is_struct(self) -> bool:
        return not self.containers and self.kind not in SCALARS and self.kind not in OPAQUE


class Message(NamedTuple):
    name: str
    fields: tuple[Field, ...]
    by_name: dict[str, Field]  # with the fields of embedded structs
    always: tuple[Field, ...]  # those that JSON shows even when nothing was said about them
    is_kind: bool  # has apiVersion and kind of its own, also inside other objects

    @property
    def go_name(self) -> str:
        return self.name.rpartition(".")[2]


@cache
def message(name: str) -> Message:
    """Returns the type that OpenAPI calls `io.k8s.api.core.v1.Pod`."""
    fields = tuple(_field(*each) for each in _data()[name])
    by_name: dict[str, Field] = {}
    for field in fields:
        if field.name:
            by_name[field.name] = field
        else:
            by_name.update(message(field.kind).by_name)
    always = tuple(each for each in by_name.values() if _is_always_shown(each))
    return Message(name, fields, by_name, always, name in _kinds())


@cache
def _kinds() -> frozenset[str | None]:
    return frozenset(definition_name(gvk) for gvk in kinds())


def message_of(gvk: GVK) -> Message | None:
    name = definition_name(gvk)
    return message(name) if name and name in _data() else None


def zero(field: Field) -> Any:
    """Returns what Go writes for a field that was never set."""
    if field.pointer or field.containers:
        return None
    match field.kind:
        case "string":
            return ""
        case "bool":
            return False
        case "int32" | "int64" | "float64":
            return 0
        case "bytes":
            return None
        case kind if kind == QUANTITY:
            return "0"
        case kind if kind == INT_OR_STRING:
            return 0
        case kind if kind == DURATION:
            return "0s"
        case kind if kind in OPAQUE:
            return None
        case kind:
            return {each.name: zero(each) for each in message(kind).always}


def _is_always_shown(field: Field) -> bool:
    if field.omit_zero:
        return False
    if field.omit_empty:
        return not field.pointer and (
            field.is_struct or (not field.containers and field.kind in (TIME, MICRO_TIME, RAW))
        )
    return True


def _field(number: int, name: str, kind: str, flags: str) -> Field:
    containers = ""
    while kind[:2] in ("[]", "{}"):
        containers, kind = containers + kind[:2], kind[2:]
    return Field(number, name, kind, containers, "p" in flags, "o" in flags, "z" in flags)


@cache
def _data() -> dict[str, Any]:
    packed = resources.files("isvc.kube.builtin").joinpath("data/types.json.gz").read_bytes()
    data: dict[str, Any] = orjson.loads(gzip.decompress(packed))
    return data
