"""The overview: which of all services a page shows, in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlencode

from isvc.dashboard.views.rows import Row, State

PAGE_SIZE: Final = 50


@dataclass(frozen=True, slots=True)
class Question:
    """What the reader asked for: words that a row has to have, a namespace, and the number of the page."""

    text: str = ""
    namespace: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: dict[str, str]) -> Self:
        number = query.get("page", "1")
        page = int(number) if number.isascii() and number.isdecimal() and len(number) < 7 else 1
        return cls(query.get("q", "").strip()[:200], query.get("namespace", ""), max(1, page))

    def query(self, page: int = 0) -> str:
        values = {"q": self.text, "namespace": self.namespace, "page": page if page > 1 else ""}
        return urlencode({name: value for name, value in values.items() if value})


@dataclass(frozen=True, slots=True, eq=False)
class Overview:
    """`rows` are those of the page; `found` is how many there are on all pages.

    Two are equal if they are the same, which is quick to find out: what is rendered of one is kept for all its readers.
    """

    question: Question
    rows: tuple[Row, ...]
    found: int
    total: int
    page: int
    pages: int
    counts: dict[str, int]
    namespaces: tuple[str, ...]


def overview(rows: Iterable[Row], question: Question) -> Overview:
    everything = list(rows)
    words = question.text.lower().split()
    found = [
        row
        for row in everything
        if question.namespace in ("", row.place.namespace) and (not words or row.matches(words))
    ]
    found.sort(key=lambda row: row.order)
    pages = max(1, -(-len(found) // PAGE_SIZE))
    page = min(question.page, pages)
    states = Counter(row.state for row in everything)
    return Overview(
        question=question,
        rows=tuple(found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]),
        found=len(found),
        total=len(everything),
        page=page,
        pages=pages,
        counts={str(each): states[each] for each in State if states[each]},
        namespaces=tuple(sorted({row.place.namespace for row in everything} - {""})),
    )
