"""Reads lists and watches without the objects that are nested deeper than can be decoded.

kube-apiserver takes objects of 10,000 levels, where a kind has fields of any form. One of them must not keep a manager
from all the others.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)

DEEPEST = 200  # orjson writes 254 levels
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def leaving_out_deep_items(decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """The decoder of a list, which tries again without the items that are nested too deeply."""

    def decode_what_can_be(page: bytes) -> T:
        try:
            return decode(page)
        except RecursionError:
            return decode(_without_deep_items(page))

    return decode_what_can_be


def unless_deep(decode: Callable[[bytes], T]) -> Callable[[bytes], T | None]:
    """The decoder, which gives nothing for what is nested too deeply."""

    def decode_if_possible(text: bytes) -> T | None:
        try:
            return decode(text)
        except RecursionError:
            log.error("a change of an object is ignored: it is nested too deeply")
            return None

    return decode_if_possible


def _without_deep_items(page: bytes) -> bytes:
    items = list(_items(page))
    kept = [page[start:end] for start, end, depth in items if depth <= DEEPEST]
    log.error("%d of %d objects of a list are left out: they are nested too deeply", len(items) - len(kept), len(items))
    return page[: items[0][0]] + b",".join(kept) + page[items[-1][1] :]


def _items(page: bytes) -> Iterator[tuple[int, int, int]]:
    """Where each item of the list begins and ends, and how deeply it is nested; without recursion."""
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
