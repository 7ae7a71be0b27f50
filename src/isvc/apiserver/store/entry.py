"""One revision of one object, kept as the bytes that clients are sent.

Most requests read objects without looking inside, so an entry holds encoded JSON and only the few values that lists and
watches select by. `parse()` gives a fresh dict: its caller owns it and may change it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

from isvc.kube.objects import Object

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"


class Lifetime(msgspec.Struct, rename="camel"):
    """What of an object's metadata decides how long it lives."""

    uid: str = ""
    owner_references: list[dict[str, Any]] | None = None
    finalizers: list[str] | None = None
    deletion_timestamp: str | None = None


class _Metadata(msgspec.Struct):
    metadata: Lifetime


class _Head(msgspec.Struct):
    metadata: dict[str, Any]


class _Labels(msgspec.Struct):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Labels


_decode_metadata: Final = msgspec.json.Decoder(_Metadata).decode
_decode_head: Final = msgspec.json.Decoder(_Head).decode
_decode_labels: Final = msgspec.json.Decoder(_Labelled).decode


class Entry(msgspec.Struct, gc=False, eq=False):  # the collector need not look at what cannot be part of a cycle
    collection: str
    namespace: str
    name: str
    rv: int
    raw: bytes
    labels: dict[str, str]
    epoch: int = -1  # the schema under which `raw` was written; -1 when it comes from the disk

    def parse(self) -> Object:
        obj: Object = orjson.loads(self.raw)
        return obj

    def parse_metadata(self) -> Object:
        """Returns the object's metadata, a fresh dict, without making anything of the rest."""
        return _decode_head(self.raw).metadata

    def lifetime(self) -> Lifetime:
        """Returns a small part of the object, in a fraction of the time that all of it takes."""
        return _decode_metadata(self.raw).metadata


class Event(msgspec.Struct, gc=False, eq=False):
    """What happened at revision `rv`. For a deletion `entry` is the last state, carrying the deletion's revision."""

    rv: int
    type: str
    entry: Entry
    old: Entry | None


def encode(obj: Object) -> bytes:
    """Writes JSON with kind and apiVersion first, so that `without_type` can cut them off without parsing."""
    ordered = {"kind": obj.get("kind", ""), "apiVersion": obj.get("apiVersion", "")}
    ordered.update(obj)
    # orjson leaves the unused rest of its buffer behind the bytes, as a hole that nothing else fits into: copy.
    return bytes(memoryview(orjson.dumps(ordered)))


def labels_in(obj: Object) -> dict[str, str]:
    labels = obj.get("metadata", {}).get("labels")
    return dict(labels) if labels else {}


def labels_within(raw: bytes) -> dict[str, str]:
    """Returns the labels of an object that is not parsed for it."""
    return _decode_labels(raw).metadata.labels or {}
