"""Lines out of chunks of any size."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from isvc.toolkit.client import _lines


async def of(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ((b"a\nb", b"c\n", b"\nd"), [b"a", b"bc", b"d"]),
        ((b"12", b"34", b"5\n6"), [b"1234", b"5", b"6"]),
        ((b"1\n23", b"45", b"\n"), [b"1", b"2345"]),
    ],
)
async def test_a_line_without_an_end_comes_in_pieces(chunks, lines):
    assert [line async for line in _lines(of(*chunks), longest=4)] == lines


async def test_a_line_may_be_as_long_as_it_likes():
    assert [line async for line in _lines(of(*[b"x" * 100] * 100))] == [b"x" * 10_000]
