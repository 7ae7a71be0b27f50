"""Pieces of Markdown that reference pages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell(each) for each in line) + " |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Text in one line, in which nothing but what stands between backticks is taken literally."""
    pieces = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(piece if literal % 2 else piece.replace("<", "&lt;") for literal, piece in enumerate(pieces))


def code(text: str) -> str:
    """Text as code; nothing for nothing."""
    return f"`{text}`" if text else ""
