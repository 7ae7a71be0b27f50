"""Memories that do not outgrow a number of entries: what came last stays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Bounded(OrderedDict[K, V]):
    """A dict of at most `most` entries: one more drops the one that was set the longest time ago."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Expiring(Generic[K, V]):
    """Answers that hold for a limited time, and a limited number of them."""

    def __init__(self, most: int, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._kept: Bounded[K, tuple[float, V]] = Bounded(most)  # valid until, answer

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, question: K) -> bool:
        return question in self._kept and self._monotonic() < self._kept[question][0]

    def __getitem__(self, question: K) -> V:
        return self._kept[question][1]

    def get(self, question: K, default: V) -> V:
        until, answer = self._kept.get(question, (0.0, default))
        return answer if self._monotonic() < until else default

    def keep(self, question: K, answer: V, seconds: float) -> None:
        self._kept[question] = self._monotonic() + seconds, answer
