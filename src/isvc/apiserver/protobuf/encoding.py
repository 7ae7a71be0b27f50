"""JSON-shaped objects of built-in types as protobuf messages: the reverse of `values`."""

from __future__ import annotations

import base64
import re
import struct
from datetime import datetime
from typing import Any

import orjson

from isvc.kube.builtin import types
from isvc.kube.builtin.types import Field, Message
from isvc.kube.objects import Object

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_NANOSECONDS = {"h": 3600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "µs": 10**3, "us": 10**3, "ns": 1}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|µs|us|ns)")


def write_message(obj: Object, message: Message) -> bytes:
    parts = []
    for field in message.fields:
        if not field.name:  # its fields are beside the others in JSON
            inner = write_message(obj, types.message(field.kind))
            parts.append(encode_field(field.number, inner) if inner else b"")
        elif (value := obj.get(field.name)) is not None:
            parts.append(_field(field, value))
    return b"".join(parts)


def _field(field: Field, value: Any) -> bytes:
    if field.containers == "[]":
        return b"".join(_value(field.number, field.kind, item) for item in value)
    if field.containers:
        return b"".join(encode_field(field.number, _entry(field, key, each)) for key, each in sorted(value.items()))
    return _value(field.number, field.kind, value)


def _entry(field: Field, key: str, value: Any) -> bytes:
    if field.containers == "{}[]":
        inner = encode_field(2, b"".join(_value(1, field.kind, item) for item in value))
    else:
        inner = _value(2, field.kind, value)
    return encode_field(1, key.encode()) + inner


def _value(number: int, kind: str, value: Any) -> bytes:
    match kind:
        case "string":
            return encode_field(number, str(value).encode())
        case "bool" | "int32" | "int64":
            return varint(number << 3 | _VARINT) + varint(int(value))
        case "float64":
            return varint(number << 3 | _FIXED64) + struct.pack("<d", value)
        case "bytes":
            return encode_field(number, base64.b64decode(value))
        case _ if kind in types.OPAQUE:
            return encode_field(number, _opaque(kind, value))
        case _:
            return encode_field(number, write_message(value, types.message(kind)))


def _opaque(kind: str, value: Any) -> bytes:
    match kind:
        case types.TIME | types.MICRO_TIME:
            moment = datetime.fromisoformat(value)
            return _number(1, int(moment.timestamp() // 1)) + _number(2, moment.microsecond * 1000)
        case types.DURATION:
            return _number(1, _nanoseconds(value))
        case types.QUANTITY:
            return encode_field(1, str(value).encode())
        case types.INT_OR_STRING:
            if isinstance(value, str):
                return _number(1, 1) + encode_field(3, value.encode())
            return _number(1, 0) + _number(2, value)
        case types.PROPS_OR_ARRAY | types.PROPS_OR_BOOL | types.PROPS_OR_STRINGS:
            return _schema_or_else(kind, value)
        case _:
            return encode_field(1, orjson.dumps(value))


def _schema_or_else(kind: str, value: Any) -> bytes:
    schema = types.message(types.PROPS)
    if kind == types.PROPS_OR_BOOL:
        if isinstance(value, bool):
            return _number(1, value)
        return _number(1, 1) + encode_field(2, write_message(value, schema))
    if isinstance(value, dict):
        return encode_field(1, write_message(value, schema))
    if kind == types.PROPS_OR_STRINGS:
        return b"".join(encode_field(2, item.encode()) for item in value)
    return b"".join(encode_field(2, write_message(item, schema)) for item in value)


def _nanoseconds(text: str) -> int:
    """Reads Go's notation: 1h2m3.5s."""
    total = sum(round(float(amount) * _NANOSECONDS[unit]) for amount, unit in _DURATION.findall(text))
    return -total if text.startswith("-") else total


def _number(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(value)


def encode_field(number: int, data: bytes) -> bytes:
    """Encodes a field of bytes, text or a message."""
    return varint(number << 3 | _BYTES) + varint(len(data)) + data


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers are 64 bits wide
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
