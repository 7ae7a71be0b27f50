"""Ends the process groups of a node that is gone, however it went.

A tiny program of its own, with the standard library alone. The node tells it on standard input which groups are alive
(`+4711 88213`, with the leader's start time, and `-4711`); when that pipe ends, which a kill -9 of the node cannot
prevent, it kills what is left. A number that by then belongs to another process is left alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def started_at(pid: int) -> str:
    """What tells a process from a later one with the same number; empty where nothing is known."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    alive: dict[int, str] = {}
    for line in sys.stdin:
        group, _, started = line[1:].strip().partition(" ")
        if line.startswith("+") and group.isdigit() and int(group) > 1:
            alive[int(group)] = started
        elif line.startswith("-") and group.isdigit():
            alive.pop(int(group), None)
    for left, started in alive.items():
        if started_at(left) in ("", started):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(left, signal.SIGKILL)


if __name__ == "__main__":
    main()
