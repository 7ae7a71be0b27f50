"""How a process that lives long keeps its memory, and gives it back to the system where its allocator is glibc's.

By itself glibc raises its thresholds as large blocks come and go, such as lists of objects in JSON, until it keeps up
to 64 MB of what was freed, between blocks that stay.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import suppress
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # parameters of mallopt
_BYTES: Final = 128 << 10  # what glibc begins with


def settle_memory() -> None:
    """Exempts what a start has loaded from garbage collection, which goes on from here, and returns freed memory."""
    gc.freeze()
    gc.enable()
    # Objects here are trees, which need no collector. It looks at all of them seldom, and otherwise at few at a time:
    # everything waits for it, for 0.13 s where it looks at 400,000.
    gc.set_threshold(5_000, 10, 400)
    return_freed_memory()


def return_freed_memory() -> None:
    """Returns what is free now, and from now on large blocks at once and the end of the heap as soon as it is free."""
    if sys.platform == "linux":
        with suppress(AttributeError):  # not glibc
            libc = ctypes.CDLL(None)
            for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
                libc.mallopt(parameter, _BYTES)
            libc.malloc_trim(0)
