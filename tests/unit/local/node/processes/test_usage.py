"""CPU and memory of containers: children count, rates are over a window, what ended is forgotten."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.waiting import until, wait_until

from isvc.local.node.processes import usage
from isvc.local.node.processes.usage import WINDOW, Sample, UsageMeter, measure

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")

BUSY_CHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "print('begun', flush=True)\\nwhile True: pass"])
sys.stdin.read()
child.kill()
child.wait()
"""


@contextmanager
def program(code: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield process
    finally:
        process.communicate()


def test_children_count():
    with program(BUSY_CHILD) as process:
        assert process.stdout is not None
        process.stdout.readline()
        before = measure([process.pid])[process.pid]
        wait_until(lambda: measure([process.pid])[process.pid].cpu - before.cpu > 0.2, "CPU time of the child")
        own = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096
        assert measure([process.pid])[process.pid].memory > own


def test_a_process_that_ended_has_no_sample():
    with program("pass") as process:
        process.wait()
    assert process.pid not in measure([process.pid])


def test_rates_are_of_the_last_seconds():
    meter, now = UsageMeter(list), time.monotonic()
    assert meter.of(7) is None
    for second in range(0, 60, 2):  # idle for half a minute, then at two cores
        meter.add({7: Sample(now + second, max(0, second - 30) * 2.0, 1000 + second)})
    used = meter.of(7)
    assert used is not None
    assert (used.cores, used.memory, used.window) == (2.0, 1058, WINDOW)


def test_what_is_gone_is_forgotten():
    meter = UsageMeter(list)
    for second in (1, 2):
        meter.add({7: Sample(second, 1.0, 1), 8: Sample(second, 1.0, 1)})
    meter.add({8: Sample(3, 1.0, 1)})
    assert meter.of(7) is None
    assert meter.of(8) is not None


def test_without_containers_no_process_is_looked_at():
    assert list(measure([])) == list(measure([2**22 + 1]))  # the machine alone


async def test_who_looks_ends_the_rest(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(usage, "PERIOD", 0.0)
    monkeypatch.setattr(usage, "AT_REST", -1.0)  # it rests at once
    monkeypatch.setattr(usage, "PERIOD_AT_REST", 3600.0)
    samples: list[int] = []
    meter = UsageMeter(lambda: samples.append(1) or [])  # type: ignore[func-returns-value]
    meter.start()
    await until(lambda: len(samples) == 1, "the first sample")
    await until(lambda: meter.look() or len(samples) > 1, "a sample for who looks")  # type: ignore[func-returns-value]
    await meter.stop()
