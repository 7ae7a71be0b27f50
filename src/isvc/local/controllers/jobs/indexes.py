"""Completion indexes of Indexed Jobs: of pods, and as the text of a status, such as `0,2-4`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.objects import Object, annotations_of

INDEX: Final = "batch.kubernetes.io/job-completion-index"


def index_of(pod: Object) -> int | None:
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else None


def parse_indexes(text: str) -> set[int]:
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for index in sorted(indexes):
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return ",".join(_text(first, last) for first, last in ranges)


def _text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
