"""Reads protobuf messages: numbered values on the wire, then what a built-in type means by them, as in JSON."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from isvc.kube.builtin import types
from isvc.kube.builtin.types import Field, Message
from isvc.kube.objects import Object

_DEEPEST = 64


class Malformed(ValueError):
    """The bytes are not a protobuf message."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Returns an unsigned varint at a position, and the position after it."""
    value = shift = 0
    while shift < 70:
        if at >= len(data):
            raise Malformed("a number ends early")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Malformed("a number has more than ten bytes")


def to_signed(value: int) -> int:
    """Returns a varint as the 64-bit signed number it stands for."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yields number and raw value of every field: an int for varints, bytes for all else."""
    at, end = 0, len(data)
    while at < end:
        tag, at = read_varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = read_varint(data, at)
            yield number, value
            continue
        if wire_type == 2:
            size, at = read_varint(data, at)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise Malformed(f"wire type {wire_type} is not used by Kubernetes")
        if at + size > end:
            raise Malformed(f"field {number} ends early")
        yield number, data[at : at + size]
        at += size


def read_message(data: bytes, message: Message, depth: int = 0) -> Object:
    if depth > _DEEPEST:
        raise Malformed("messages are nested too deeply")
    numbered = {field.number: field for field in message.fields}
    found: Object = {}
    for number, raw in fields(data):
        field = numbered.get(number)
        if field is None:
            continue
        if not field.name:
            found.update(read_message(_bytes(raw), types.message(field.kind), depth + 1))
        elif field.containers == "[]":
            found.setdefault(field.name, []).extend(_items(field, raw, depth))
        elif field.containers:
            key, value = _entry(field, _bytes(raw), depth)
            found.setdefault(field.name, {})[key] = value
        else:
            found[field.name] = _value(field.kind, raw, depth)
    return found


def _items(field: Field, raw: int | bytes, depth: int) -> list[Any]:
    """Returns one item, or several numbers packed in one byte string."""
    if isinstance(raw, bytes) and field.kind in ("int32", "int64", "bool"):
        items, at = [], 0
        while at < len(raw):
            number, at = read_varint(raw, at)
            items.append(_value(field.kind, number, depth))
        return items
    return [_value(field.kind, raw, depth)]


def _entry(field: Field, data: bytes, depth: int) -> tuple[str, Any]:
    key = ""
    value: int | bytes = b""
    for number, raw in fields(data):
        if number == 1:
            key = _bytes(raw).decode()
        elif number == 2:
            value = raw
    if field.containers == "{}[]":
        return key, [_value(field.kind, raw, depth) for number, raw in fields(_bytes(value)) if number == 1]
    return key, _value(field.kind, value, depth)


def _value(kind: str, raw: int | bytes, depth: int) -> Any:
    match kind:
        case "string":
            return _bytes(raw).decode()
        case "bool":
            return bool(_int(raw))
        case "int32" | "int64":
            return to_signed(_int(raw))
        case "float64":
            return struct.unpack("<d", _bytes(raw))[0]
        case "bytes":
            return base64.b64encode(_bytes(raw)).decode()
        case _ if kind in types.OPAQUE:
            return _opaque(kind, dict(fields(_bytes(raw))), _bytes(raw), depth)
        case _:
            return read_message(_bytes(raw), types.message(kind), depth + 1)


def _opaque(kind: str, parts: dict[int, int | bytes], raw: bytes, depth: int) -> Any:
    """Reads values of types that JSON writes in a way of their own."""
    match kind:
        case types.TIME | types.MICRO_TIME:
            return _time(parts, micro=kind == types.MICRO_TIME) if parts else None
        case types.DURATION:
            return _duration(to_signed(_int(parts.get(1, 0))))
        case types.QUANTITY:
            return _bytes(parts.get(1, b"0")).decode()
        case types.INT_OR_STRING:
            is_text = bool(parts.get(1, 0))
            return _bytes(parts.get(3, b"")).decode() if is_text else to_signed(_int(parts.get(2, 0)))
        case types.PROPS_OR_ARRAY | types.PROPS_OR_BOOL | types.PROPS_OR_STRINGS:
            return _schema_or_else(kind, parts, raw, depth)
        case _:
            text = _bytes(parts.get(1, b""))
            return orjson.loads(text) if text else None


def _schema_or_else(kind: str, parts: dict[int, int | bytes], raw: bytes, depth: int) -> Any:
    schema_number = 2 if kind == types.PROPS_OR_BOOL else 1
    if schema_number in parts:
        return read_message(_bytes(parts[schema_number]), types.message(types.PROPS), depth + 1)
    if kind == types.PROPS_OR_BOOL:
        return bool(_int(parts.get(1, 0)))
    rest = [_bytes(value) for number, value in fields(raw) if number == 2]
    if kind == types.PROPS_OR_STRINGS:
        return [text.decode() for text in rest]
    return [read_message(each, types.message(types.PROPS), depth + 1) for each in rest]


def _time(parts: dict[int, int | bytes], *, micro: bool) -> str:
    moment = datetime.fromtimestamp(0, UTC) + timedelta(seconds=to_signed(_int(parts.get(1, 0))))
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{to_signed(_int(parts.get(2, 0))) // 1000:06d}Z" if micro else f"{text}Z"


def _duration(nanoseconds: int) -> str:
    """Writes seconds as Go prints them: 1h2m3.5s."""
    sign, rest = ("-" if nanoseconds < 0 else ""), abs(nanoseconds)
    if 0 < rest < 1_000_000_000:
        unit, size = next(u for u in (("ms", 10**6), ("µs", 10**3), ("ns", 1)) if rest >= u[1])
        return f"{sign}{rest / size:g}{unit}"
    minutes, rest = divmod(rest, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    whole, fraction = divmod(rest, 10**9)
    seconds = f"{whole}.{fraction:09d}".rstrip("0").rstrip(".") + "s"
    return sign + (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + seconds


def _bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise Malformed("a number where text was expected")
    return raw


def _int(raw: int | bytes) -> int:
    if isinstance(raw, bytes):
        raise Malformed("text where a number was expected")
    return raw
