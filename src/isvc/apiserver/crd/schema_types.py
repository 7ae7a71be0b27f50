"""The types of a structural schema, for CEL's checker: a rule that asks for unknown fields or mixes types is refused.

The checker knows types of its own, lists, maps and protobuf messages. So every object with properties becomes a message
that exists for the checker alone, with the fields whose names occur in the rules; values are still passed as they are.
What cannot be said that way is of any type: lists in lists, times and durations (which rules see as text).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from isvc.apiserver.cel import CelError, compile_expression, compile_in, environment, extensions
from isvc.apiserver.crd.values import names_of
from isvc.kube.schemas import Schema

_PACKAGE = "schema"
_ANY = ".google.protobuf.Value"
_ROOT: dict[str, Schema] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
}
_SCALARS = {"string": "STRING", "integer": "INT", "number": "DOUBLE", "boolean": "BOOL"}
_WIRE = {"string": "TYPE_STRING", "integer": "TYPE_INT64", "number": "TYPE_DOUBLE", "boolean": "TYPE_BOOL"}
#: Integers and doubles may be compared, but the checker does not know.
_MIXED_NUMBERS = re.compile(
    r"ERROR: [^\n]*overload for '_[<>]=?_' applied to '\((?:int, double|double, int)\)'\n[^\n]*\n[^\n]*"
)
_OPAQUE_FORMATS = ("date", "date-time", "duration", "byte")


@dataclass(frozen=True)
class _SelfType:
    messages: bytes
    name: str
    type: Any = field(compare=False)


class SchemaTypes:
    """The types of one schema and of all that it contains."""

    def __init__(self, schema: Schema, expressions: Iterable[str], *, is_root: bool) -> None:
        from cel_expr_python import cel
        from google.protobuf import descriptor_pb2

        self._cel = cel
        self._words = {word for each in expressions for word in re.findall(r"\w+", each)}
        self._fields = descriptor_pb2.FieldDescriptorProto
        self._file = descriptor_pb2.FileDescriptorProto(
            name="schema.proto", package=_PACKAGE, dependency=["google/protobuf/struct.proto"]
        )
        own = self._type(schema, is_root=is_root)
        self._self = _SelfType(self._file.SerializeToString(deterministic=True), own.name(), own)

    def result(self, source: str) -> str:
        """Returns the type of an expression, as CEL calls it: BOOL, STRING, DYN; raises CelError if it does not fit."""
        return _result(self._self, source)

    def _type(self, schema: Schema, *, is_root: bool = False) -> Any:
        """Returns the type of a variable."""
        types = self._cel.Type
        if _is_opaque(schema):
            return types.DYN
        match schema["type"]:
            case "array":
                return types.List(self._type(schema.get("items") or {}))
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                return types.Map(types.STRING, self._type(schema["additionalProperties"]))
            case "object":
                return types(self._message(schema, is_root=is_root))
            case kind:
                return getattr(types, _SCALARS[kind])

    def _message(self, schema: Schema, *, is_root: bool = False) -> str:
        message = self._file.message_type.add(name=f"Type{len(self._file.message_type)}")
        properties = schema.get("properties") or {}
        if is_root or schema.get("x-kubernetes-embedded-resource"):
            properties = {**properties, **_ROOT}
        for key, inner in properties.items():
            for name in names_of(key) if _is_visible(inner) else ():
                if name in self._words and name.isidentifier() and name.isascii():
                    self._add_field(message, name, inner)
        return f"{_PACKAGE}.{message.name}"

    def _add_field(self, message: Any, name: str, schema: Schema) -> None:
        number = len(message.field) + 1
        field = message.field.add(name=name, json_name=name, number=number, label=self._fields.LABEL_OPTIONAL)
        if not _is_opaque(schema):
            if schema["type"] == "array":
                field.label = self._fields.LABEL_REPEATED
                schema = schema.get("items") or {}
            elif isinstance(schema.get("additionalProperties"), dict):
                field.label = self._fields.LABEL_REPEATED
                self._set_type(field, f".{_PACKAGE}.{message.name}.{self._entry(message, name, schema)}")
                return
        self._set_type(field, self._inner(schema))

    def _entry(self, message: Any, name: str, schema: Schema) -> str:
        """Returns the message that protobuf has for the entries of a map, under the name that it has to have."""
        words = [part[:1].upper() + part[1:] for part in name.split("_")]
        entry = message.nested_type.add(name=f"{''.join(words)}Entry")
        entry.options.map_entry = True
        key = entry.field.add(name="key", number=1, label=self._fields.LABEL_OPTIONAL)
        key.type = self._fields.TYPE_STRING
        value = entry.field.add(name="value", number=2, label=self._fields.LABEL_OPTIONAL)
        self._set_type(value, self._inner(schema["additionalProperties"]))
        return str(entry.name)

    def _inner(self, schema: Schema) -> str:
        """Returns the type of one value of a field: a scalar's, or the name of a message."""
        if _is_opaque(schema) or schema["type"] == "array" or isinstance(schema.get("additionalProperties"), dict):
            return _ANY
        return f".{self._message(schema)}" if schema["type"] == "object" else _WIRE[schema["type"]]

    def _set_type(self, field: Any, kind: str) -> None:
        if kind.startswith("."):
            field.type, field.type_name = self._fields.TYPE_MESSAGE, kind
        else:
            field.type = getattr(self._fields, kind)


@lru_cache(maxsize=2)  # rules of one schema come one after the other
def _environment(self_type: _SelfType, used: extensions.Names) -> Any:
    from google.protobuf import descriptor_pool, struct_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(struct_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(self_type.messages)
    return environment(used, pool, self_type.type)


@lru_cache(maxsize=512)  # versions of a definition have many rules in common
def _result(self_type: _SelfType, source: str) -> str:
    try:
        program = compile_in(_environment(self_type, extensions.used_in(source)), source)
    except CelError as error:
        if _MIXED_NUMBERS.sub("", str(error)).strip():
            raise
        program = compile_expression(source)
    return program.result_type


def _is_visible(schema: Schema) -> bool:
    """Returns whether rules see the field: not if it has no type."""
    return bool(schema.get("type") or schema.get("x-kubernetes-int-or-string"))


def _is_opaque(schema: Schema) -> bool:
    return not schema.get("type") or bool(
        schema.get("x-kubernetes-int-or-string") or schema.get("format") in _OPAQUE_FORMATS or schema.get("nullable")
    )
