"""What an API server answers, decoded: objects, lists page by page, and the lines of a watch.

What is not of their form raises `msgspec.MsgspecError`, or `Unreachable` where it shows only when an item is read.

Objects that are nested deeper than can be decoded are left out: kube-apiserver takes 10,000 levels, where a kind has
fields of any form, and one of them must not keep a manager from all the others.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.toolkit.failure import Unreachable

T = TypeVar("T")

log = logging.getLogger(__name__)

DEEPEST = 200  # orjson writes 254 levels
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


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
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


class _Metadata(msgspec.Struct, gc=False):
    version: str = msgspec.field(name="resourceVersion")
    name: str = ""
    namespace: str = ""


class _Head(msgspec.Struct, gc=False):
    metadata: _Metadata


class _ListMeta(msgspec.Struct, gc=False):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    next_page: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct, gc=False):
    """One page of a list, with its items still as they came: decoding them one by one keeps the peak of memory low."""

    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None

    @property
    def resource_version(self) -> str:
        return self.metadata.resource_version

    def objects(self, resource: Resource) -> Iterator[Object]:
        """Yields the items, with the apiVersion and kind that servers leave out of lists."""
        for item in self.items or ():
            try:
                obj = decode_object(item)
            except msgspec.MsgspecError:
                raise Unreachable(f"the server's list of {resource} holds what is no object") from None
            if obj.get("kind") != resource.kind:
                obj = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
            yield obj


def skip_deep_items(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Makes the decoder of a list try again without the items that are nested too deeply."""

    def decode_what_can_be(page: bytes) -> T:
        try:
            return decode(page)
        except RecursionError:
            return decode(_without_deep_items(page))

    return decode_what_can_be


def skip_deep(decode: Callable[[bytes], T]) -> Callable[[bytes], T | None]:
    """Makes a decoder return None for what is nested too deeply."""

    def decode_if_possible(text: bytes) -> T | None:
        try:
            return decode(text)
        except RecursionError:
            log.error("a change of an object is ignored: it is nested too deeply")
            return None

    return decode_if_possible


decode_line = skip_deep(msgspec.json.Decoder(_Line).decode)
decode_head = msgspec.json.Decoder(_Head).decode
decode_page = skip_deep_items(msgspec.json.Decoder(Page).decode)
decode_map = msgspec.json.Decoder(dict[str, Any]).decode


def decode_object(body: bytes | msgspec.Raw) -> Object:
    obj = decode_map(body)
    if not isinstance(obj.get("metadata"), dict):
        raise msgspec.ValidationError("an object has metadata")
    return obj


def _without_deep_items(page: bytes) -> bytes:
    items = list(_items(page))
    kept = [page[start:end] for start, end, depth in items if depth <= DEEPEST]
    log.error("%d of %d objects of a list are left out: they are nested too deeply", len(items) - len(kept), len(items))
    return page[: items[0][0]] + b",".join(kept) + page[items[-1][1] :]


def _items(page: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields where each item of the list begins and ends, and how deeply it is nested; without recursion."""
    depth = start = deepest = 0
    in_items = False
    for token in _TOKEN.finditer(page):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                deepest = max(deepest, depth)
                if depth == 2:
                    in_items = token[0] == b"["
                elif depth == 3 and in_items:
                    start, deepest = token.start(), depth
            case b"}" | b"]":
                depth -= 1
                if depth == 2 and in_items:
                    yield start, token.end(), deepest - 2


async def split_lines(chunks: AsyncIterator[bytes], longest: float = math.inf) -> AsyncGenerator[bytes, None]:
    """Yields the lines in chunks of any size; one that is longer than `longest` comes in pieces."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        if b"\n" not in chunk:
            parts.append(chunk)
            size += len(chunk)
            if size >= longest:
                yield b"".join(parts)
                parts, size = [], 0
            continue
        lines = (b"".join(parts) + chunk).split(b"\n") if parts else chunk.split(b"\n")
        parts = [last] if (last := lines.pop()) else []
        size = len(last)
        for line in lines:
            if line:
                yield line
    if rest := b"".join(parts):
        yield rest
