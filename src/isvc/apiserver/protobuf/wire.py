"""Protobuf's wire format: a message is a sequence of numbered values: varints, fixed-size bytes, byte strings."""

from __future__ import annotations

from collections.abc import Iterator


class Malformed(ValueError):
    """The bytes are not a protobuf message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint at a position, and the position after it."""
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


def signed(value: int) -> int:
    """A varint as the 64-bit signed number it stands for."""
    return value - (1 << 64) if value >= 1 << 63 else value


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and raw value of every field: an int for varints, bytes for all else."""
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == 0:
            value, at = varint(data, at)
            yield number, value
            continue
        if wire_type == 2:
            size, at = varint(data, at)
        elif wire_type in (1, 5):
            size = 8 if wire_type == 1 else 4
        else:
            raise Malformed(f"wire type {wire_type} is not used by Kubernetes")
        if at + size > end:
            raise Malformed(f"field {number} ends early")
        yield number, data[at : at + size]
        at += size
