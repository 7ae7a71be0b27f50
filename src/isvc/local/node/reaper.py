"""Ends the process groups of a node that is gone, however it went.

A tiny program of its own, with the standard library alone. The node tells it on standard input which groups are alive
(`+4711`, `-4711`); when that pipe ends, which a kill -9 of the node cannot prevent, it kills what is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    alive: set[int] = set()
    for line in sys.stdin:
        sign, group = line[:1], line[1:].strip()
        if group.isdigit() and int(group) > 1:
            (alive.add if sign == "+" else alive.discard)(int(group))
    for left in alive:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(left, signal.SIGKILL)


if __name__ == "__main__":
    main()
