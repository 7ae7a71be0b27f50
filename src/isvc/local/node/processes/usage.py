"""What containers use: CPU as a rate over the last seconds, memory as it is now.

A container is a process and whatever that has started. Processes that ended count as long as a parent that waited for
them lives, so that the CPU time of a container only grows. Measured from /proc: where there is none, nothing is known.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from isvc.toolkit.tasks import cancel

PERIOD: Final = 2.5  # seconds between samples while somebody looks
PERIOD_AT_REST: Final = 15.0
AT_REST: Final = 60.0  # seconds since somebody looked
WINDOW: Final = 10.0

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")
_MACHINE: Final = 0  # among the process ids: no process has this one


class Sample(NamedTuple):
    """CPU seconds since the start, and bytes in memory, at a moment of the monotonic clock."""

    at: float
    cpu: float
    memory: int


class Usage(NamedTuple):
    """CPU in cores, averaged over `window` seconds before `at` (Unix time), and bytes in memory."""

    cores: float
    memory: int
    window: float
    at: float


class _Stat(NamedTuple):
    parent: int
    cpu: float
    memory: int


class UsageMeter:
    """Takes samples while it runs. `roots` tells the first process of every container that there is now."""

    def __init__(self, roots: Callable[[], Iterable[int]]) -> None:
        self._roots = roots
        self._samples: dict[int, deque[Sample]] = {}
        self._sampled_at = time.time()
        self._asked = asyncio.Event()
        self._asked_at = time.monotonic()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        await cancel(self._task)

    async def _run(self) -> None:
        while True:
            roots = list(self._roots())
            self.add(await asyncio.to_thread(measure, roots))
            await asyncio.sleep(PERIOD)
            if time.monotonic() - self._asked_at > AT_REST:
                self._asked.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(PERIOD_AT_REST - PERIOD):
                        await self._asked.wait()

    def look(self) -> None:
        """Says that somebody reads figures: they are soon fresh, and stay so for a while."""
        self._asked_at = time.monotonic()
        self._asked.set()

    def add(self, measured: Mapping[int, Sample]) -> None:
        self._sampled_at = time.time()
        self._samples = {pid: self._samples.get(pid, deque()) for pid in measured}
        for pid, sample in measured.items():
            samples = self._samples[pid]
            samples.append(sample)
            while len(samples) > 2 and samples[1].at <= sample.at - WINDOW:
                samples.popleft()

    def of(self, pid: int) -> Usage | None:
        """Returns what a container uses, by its first process; None until it was measured twice."""
        samples = self._samples.get(pid, deque())
        if len(samples) < 2:
            return None
        first, last = samples[0], samples[-1]
        seconds = last.at - first.at
        return Usage(max(0.0, last.cpu - first.cpu) / seconds, last.memory, seconds, self._sampled_at)

    def of_machine(self) -> Usage | None:
        return self.of(_MACHINE)


def measure(roots: Iterable[int]) -> dict[int, Sample]:
    """Returns a sample of each container that still runs, and one of the whole machine."""
    roots, at = list(roots), time.monotonic()
    stats = _process_table() if roots else {}
    children: dict[int, list[int]] = {}
    for pid, stat in stats.items():
        children.setdefault(stat.parent, []).append(pid)
    found = {}
    for root in roots:
        if root in stats:
            family = [stats[pid] for pid in _tree(root, children)]
            found[root] = Sample(at, sum(each.cpu for each in family), sum(each.memory for each in family))
    if Path("/proc/stat").exists():
        found[_MACHINE] = Sample(at, *_machine())
    return found


def _tree(pid: int, children: Mapping[int, Sequence[int]]) -> Iterable[int]:
    yield pid
    for child in children.get(pid, ()):
        yield from _tree(child, children)


def _process_table() -> dict[int, _Stat]:
    found = {int(folder.name): _stat(folder / "stat") for folder in Path("/proc").glob("[0-9]*")}
    return {pid: stat for pid, stat in found.items() if stat is not None}


def _stat(path: Path) -> _Stat | None:
    try:
        fields = path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has ended
        return None
    return _Stat(int(fields[1]), sum(map(int, fields[11:15])) * _TICK, int(fields[21]) * _PAGE)


def _machine() -> tuple[float, int]:
    """Returns the machine's CPU seconds since it started, idle ones left out, and the memory that is not available."""
    fields = [int(field) for field in Path("/proc/stat").read_text().partition("\n")[0].split()[1:]]
    user, nice, system, _, _, irq, softirq, steal = fields[:8]
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    kilobytes = {words[0]: int(words[1]) for words in lines}
    memory = kilobytes["MemTotal:"] - kilobytes.get("MemAvailable:", kilobytes["MemFree:"])
    return (user + nice + system + irq + softirq + steal) * _TICK, memory * 1024
