"""Header compression that remembers: a server's answers mostly have the headers of the answer before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hpack import Encoder
from hpack.table import HeaderTable

_REMEMBERED: Final = 64


class _Table(HeaderTable):
    """Counts its changes."""

    def __init__(self) -> None:
        super().__init__()
        self.changes = 0

    def add(self, name: bytes, value: bytes) -> None:
        self.changes += 1
        super().add(name, value)


class CachingEncoder(Encoder):
    """What was encoded without a change of the table is the same bytes for as long as the table stays as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.header_table = self._table = _Table()
        self._known: dict[tuple[Any, ...], bytes] = {}
        self._known_at = 0

    def encode(self, headers: Iterable[Any], huffman: bool = True) -> bytes:
        if self._known_at != self._table.changes or self._table.resized or len(self._known) >= _REMEMBERED:
            self._known.clear()
            self._known_at = self._table.changes
        key = tuple(headers)
        found = self._known.get(key)
        if found is None:
            found = super().encode(key, huffman)
            if self._known_at == self._table.changes:
                self._known[key] = found
        return found
