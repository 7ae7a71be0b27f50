"""What an API server answers, decoded: objects, lists page by page, and the lines of a watch.

What is not of their form raises `msgspec.MsgspecError`, or `Unreachable` where it shows only when an item is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.toolkit.failure import Unreachable
from isvc.toolkit.nesting import leaving_out_deep_items, unless_deep


class ObjectList(NamedTuple):
    items: list[Object]
    resource_version: str


class WatchEvent(NamedTuple):
    """`type` is ADDED, MODIFIED, DELETED or BOOKMARK; an ERROR is raised instead.

    The object is decoded when it is asked for: many events are echoes of our own writes, of which the version says all.
    """

    type: str
    key: Key
    version: str
    raw: msgspec.Raw

    @property
    def object(self) -> Object:
        return decode_map(self.raw)


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class _Metadata(msgspec.Struct, gc=False):
    version: str = msgspec.field(name="resourceVersion")
    name: str = ""
    namespace: str = ""


class _Head(msgspec.Struct, gc=False):
    metadata: _Metadata


class ListMeta(msgspec.Struct, gc=False):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    next_page: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, gc=False):
    """One page of a list, with its items still as they came: decoding them one by one keeps the peak of memory low."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    def objects(self, resource: Resource) -> Iterator[Object]:
        """The items, with the apiVersion and kind that servers leave out of lists."""
        for item in self.items or ():
            try:
                obj = decode_object(item)
            except msgspec.MsgspecError:
                raise Unreachable(f"the server's list of {resource} holds what is no object") from None
            if obj.get("kind") != resource.kind:
                obj = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
            yield obj


decode_line = unless_deep(msgspec.json.Decoder(_Line).decode)
decode_head = msgspec.json.Decoder(_Head).decode
decode_page = leaving_out_deep_items(msgspec.json.Decoder(Page).decode)
decode_map = msgspec.json.Decoder(dict[str, Any]).decode


def decode_object(body: bytes | msgspec.Raw) -> Object:
    obj = decode_map(body)
    if not isinstance(obj.get("metadata"), dict):
        raise msgspec.ValidationError("an object has metadata")
    return obj
