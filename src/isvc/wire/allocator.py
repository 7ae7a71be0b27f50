"""How a process that lives long keeps its memory, and gives it back to the system where its allocator is glibc's.

By itself glibc raises its thresholds as large blocks come and go, such as lists of objects in JSON, until it keeps up
to 64 MB of what was freed, between blocks that stay.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
import time
from functools import cache, partial
from typing import Final, Literal

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # parameters of mallopt
_BYTES: Final = 1 << 20  # more than uvloop takes for a moment to read from a TLS connection, a quarter of it

# Everything waits for the garbage collector, for 0.13 s where it looks at 400,000 objects. Most objects here are trees,
# which need none. So it looks at new objects, twice, in numbers that take milliseconds, and seldom at all.
_YOUNG: Final = (3_000, 1, 1_000_000_000)  # 9,000 at a time at most: ten milliseconds on a slow machine
_EVERY: Final = 10.0  # seconds
_IDLE: Final = 0.02  # of a core
_SELDOM: Final = 60  # times: ten minutes


def prepare_memory() -> None:
    """Puts off garbage collection until `settle_memory`, and has threads share one heap: each would keep its own."""
    gc.disable()
    if (libc := _glibc()) is not None:
        libc.mallopt(_ARENA_MAX, 1)


def settle_memory(every: float = _EVERY) -> None:
    """Exempts what a start has loaded from garbage collection, which goes on from here, and returns freed memory."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(*_YOUNG)
    if _exempt_survivors not in gc.callbacks:
        gc.callbacks.append(_exempt_survivors)
    return_freed_memory()
    _collect_when_idle(every, time.process_time(), 0, was_idle=True)


def _exempt_survivors(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
    """Exempts what the collector has looked at twice: until it looks at all, only the end of its last use frees it."""
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()


def _collect_when_idle(every: float, used_before: float, times: int, exempted: int = 0, *, was_idle: bool) -> None:
    """Collects old garbage ten minutes after the last time, when the process does next to nothing, or after an hour.

    `exempted` is how often something had been exempted by the last time; if that was all, there is no need. Freed
    memory is returned when work has ended: to look for it takes the longer the more memory there is.
    """
    is_idle = time.process_time() - used_before < every * _IDLE
    passes = gc.get_stats()[1]["collections"]
    if passes > exempted and times >= (_SELDOM if is_idle else 6 * _SELDOM):
        gc.unfreeze()
        gc.collect()
        times, exempted, was_idle = 0, passes, False
    if is_idle and not was_idle:
        return_freed_memory()
    later = partial(_collect_when_idle, every, time.process_time(), times + 1, exempted, was_idle=is_idle)
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
