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
# which need none. So it looks at new objects, twice, in numbers that take milliseconds, and seldom at all. Objects that
# are freed meanwhile, however old, put off a look: at four times as many, where many services are created.
FEW: Final = 500  # new objects at a time, where people wait for what comes next
MANY: Final = 3_000  # where they do not: to look often costs a program that only reconciles 2 % of its CPU
_EVERY: Final = 10.0  # seconds
_IDLE: Final = 0.02  # of a core
_SELDOM: Final = 60  # times: ten minutes
_MORE: Final = 1.1  # times as many objects as were left by the last look at all


def prepare_memory() -> None:
    """Puts off garbage collection until `settle_memory`, and has threads share one heap: each would keep its own."""
    gc.disable()
    if (libc := _glibc()) is not None:
        libc.mallopt(_ARENA_MAX, 1)


def settle_memory(at_a_time: int = FEW, every: float = _EVERY) -> None:
    """Exempts what a start has loaded from garbage collection, which goes on from here, and returns freed memory."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(at_a_time, 1, 1_000_000_000)
    if _exempt_survivors not in gc.callbacks:
        gc.callbacks.append(_exempt_survivors)
    return_freed_memory()
    _collect_when_idle(every, time.process_time(), 0, gc.get_freeze_count(), was_idle=True)


def _exempt_survivors(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
    """Exempts what the collector has looked at twice: until it looks at all, only the end of its last use frees it."""
    if phase == "stop" and info["generation"] > 0:
        gc.freeze()


def _collect_when_idle(every: float, used_before: float, times: int, left: int = 0, *, was_idle: bool) -> None:
    """Collects old garbage ten minutes after the last time, when the process does next to nothing, or after an hour.

    `left` is how many objects the last time has left: while there are not many more, an hour is soon enough. Freed
    memory is returned when work has ended: to look for it takes the longer the more memory there is.
    """
    is_idle = time.process_time() - used_before < every * _IDLE
    is_seldom = times > 0 and times % _SELDOM == 0
    if is_seldom and (times >= 6 * _SELDOM or (is_idle and gc.get_freeze_count() > _MORE * left)):
        gc.unfreeze()
        gc.collect()
        times, left, was_idle = 0, gc.get_freeze_count(), False
    if is_idle and not was_idle:
        return_freed_memory()
    later = partial(_collect_when_idle, every, time.process_time(), times + 1, left, was_idle=is_idle)
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
