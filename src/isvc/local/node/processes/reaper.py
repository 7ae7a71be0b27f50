"""Ends the process groups of a node that is gone, however it went.

A tiny program of its own, with the standard library alone. The node writes to its standard input which groups are alive
(`+4711 88213`, with the leader's start time, and `-4711`); when that pipe ends, which a kill -9 of the node cannot
prevent, it kills what is left. A number that by then belongs to another process is left alone.

A process may leave its group (a daemon does); it is known by a mark that it inherits in its environment.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def start_time(pid: int) -> str:
    """Distinguishes a process from a later one with the same number; empty where nothing is known."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


MARK = "ISVC_PROCESS"


def find_marked(value: str) -> list[int]:
    """Returns the processes with a mark that begins so, where the system shows them."""
    wanted, found = f"{MARK}={value}".encode(), []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if any(item.startswith(wanted) for item in file.read().split(b"\0")):
                    found.append(int(name))
    return found


def kill_marked(value: str) -> None:
    """Ends processes by their mark, and those that they started meanwhile."""
    for _ in range(5):
        left = [pid for pid in find_marked(value) if pid != os.getpid()]
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


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
        if start_time(left) in ("", started):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(left, signal.SIGKILL)
    kill_marked(sys.argv[1])


if __name__ == "__main__":
    main()
