"""How a process that lives long keeps its memory, and gives it back to the system where its allocator is glibc's.

By itself glibc raises its thresholds as large blocks come and go, such as lists of objects in JSON, until it keeps up
to 64 MB of what was freed, between blocks that stay.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import sys
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Final

log = logging.getLogger(__name__)

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # parameters of mallopt
_BYTES: Final = 1 << 20  # more than uvloop takes for a moment to read from a TLS connection, a quarter of it

# Everything waits for the garbage collector: for 0.6 s where it looks at 400,000 objects. Most objects here are trees,
# which need none, and what is left in cycles is new. So it looks at new objects, twice, in numbers that take
# milliseconds. Objects that are freed meanwhile, however old, put off a look: at four times as many, while services are
# created in numbers.
FEW: Final = 500  # new objects at a time, where people wait for what comes next
MANY: Final = 3_000  # where they do not: to look often costs a program that only reconciles 2 % of its CPU
_NEVER: Final = 1_000_000_000

# At all objects it looks only if there is memory that nothing explains, which would be a cycle that we have overlooked.
# Blocks of memory are counted, in half a millisecond for 1.5 million; to count tracked objects took 70 ms.
_EVERY: Final = 10.0  # seconds
_IDLE: Final = 0.02  # of a core
_BLOCKS: Final = 100  # that an object of the API explains: those of `isvc up` take about half of it
_UNEXPLAINED: Final = 500_000  # blocks, of 60 to 100 bytes each

Count = Callable[[], int]


def prepare_memory() -> None:
    """Puts off garbage collection until `settle_memory`, and has threads share one heap: each would keep its own."""
    gc.disable()
    if (libc := _glibc()) is not None:
        libc.mallopt(_ARENA_MAX, 1)


def settle_memory(live: Count, at_a_time: int = FEW, every: float = _EVERY) -> None:
    """Exempts what a start has loaded from garbage collection, which goes on from here, and returns freed memory.

    `live` returns how many objects of the API the program knows, by which its memory grows.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(at_a_time, 1, _NEVER)
    return_freed_memory()
    _look_after_memory(live, sys.getallocatedblocks(), every, time.process_time(), was_idle=True)


def _look_after_memory(live: Count, explained: int, every: float, used_before: float, *, was_idle: bool) -> None:
    """Looks for old garbage where there is a reason, and returns freed memory when work has ended, again and again.

    `explained` are the blocks of the start, or that the last look at all objects has left. While there is work, four
    times as many may be in use. To look for freed memory takes the longer the more there is of it.
    """
    is_idle = time.process_time() - used_before < every * _IDLE
    unexplained = sys.getallocatedblocks() - explained - _BLOCKS * live()
    if unexplained > (_UNEXPLAINED if is_idle else 4 * _UNEXPLAINED):
        found = gc.collect()
        log.info("freed %d objects in cycles, because nothing explained %d blocks of memory", found, unexplained)
        explained, was_idle = sys.getallocatedblocks(), False
    if is_idle and not was_idle:
        return_freed_memory()
    later = partial(_look_after_memory, live, explained, every, time.process_time(), was_idle=is_idle)
    asyncio.get_running_loop().call_later(every, later)


def return_freed_memory() -> None:
    """Returns what is free now, and from now on large blocks at once and the end of the heap as soon as it is free."""
    if (libc := _glibc()) is not None:
        for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            libc.mallopt(parameter, _BYTES)
        libc.malloc_trim(0)


@cache
def _glibc() -> ctypes.CDLL | None:
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    return libc if hasattr(libc, "malloc_trim") else None
