"""How the work for an input grows with its size, whatever the machine: strangers choose the sizes."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Final

FACTOR: Final = 8
LINEAR: Final = 3 * FACTOR  # what is quadratic grows by 64


def assert_grows_as_its_input(work: Callable[[int], object], size: int) -> None:
    """Fails if the work for an input of eight times the size takes much more than eight times the CPU."""
    small, large = (min(_seconds(work, each) for _ in range(3)) for each in (size, FACTOR * size))
    assert large < LINEAR * max(small, 1e-4)


def _seconds(work: Callable[[int], object], size: int) -> float:
    began = process_time()
    work(size)
    return process_time() - began
