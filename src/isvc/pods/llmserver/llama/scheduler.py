"""Lets as many sequences into llama.cpp as it has room for; the others wait here, in order, and are counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Scheduler:
    def __init__(self, sequences: int) -> None:
        self._free = asyncio.Semaphore(sequences)
        self._waiting: Counter[str] = Counter()  # sequences by LoRA adapter, "" for none
        self._running: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        return self._waiting.total()

    @property
    def running(self) -> int:
        return self._running.total()

    def adapters(self) -> tuple[set[str], set[str]]:
        """Returns the LoRA adapters that waiting and running sequences use."""
        waiting, running = ({name for name in +counts if name} for counts in (self._waiting, self._running))
        return waiting, running

    @asynccontextmanager
    async def sequence(self, adapter: str = "") -> AsyncIterator[None]:
        """Yields a place in llama.cpp, for the time of one sequence."""
        self._waiting[adapter] += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting[adapter] -= 1
        self._running[adapter] += 1
        try:
            yield
        finally:
            self._running[adapter] -= 1
            self._free.release()
