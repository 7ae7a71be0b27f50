"""Memory that is freed between blocks that stay goes back to the system, and garbage is found, old garbage as well."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

import pytest

from isvc.wire import allocator

PROGRAM = """
import sys
from pathlib import Path
from isvc.wire.allocator import return_freed_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

if sys.argv[1] == "settled":
    return_freed_memory()
bytes(8 << 20)  # comes and goes, as the first list of objects does
before, kept, freed = resident(), [], []
for number in range(64):
    freed.append(b"x" * (1 << 20))
    kept.append(b"x" * (32 << 10))  # too large for a gap that an import has left
held = resident() - before
freed.clear()
print((resident() - before) / held)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_what_is_freed_between_blocks_that_stay_is_returned():
    assert share_that_stays("settled") < 0.1
    assert share_that_stays("as it is") > 0.9, "there is nothing to be gained any more"


def share_that_stays(how: str) -> float:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return float(done.stdout)


OLD_GARBAGE = """
import asyncio, gc, weakref
from isvc.wire import allocator

class Connection:
    pass

async def main():
    loaded = [[number] for number in range(100_000)]
    allocator._UNEXPLAINED = 50_000
    looked_at = []
    look = lambda: looked_at.append(sum(len(gc.get_objects(generation=each)) for each in range(3)))
    gc.callbacks.append(lambda phase, info: look() if (phase, info["generation"]) == ("start", 2) else None)
    allocator.settle_memory(lambda: 0, every=0.005)
    connection = Connection()
    connection.transport = {"of": connection}
    connection.pieces = [{} for _ in range(60_000)]
    gc.collect(0), gc.collect(1)  # it has been looked at twice, and is in use
    seen = weakref.ref(connection)
    del connection
    while seen() is not None:
        await asyncio.sleep(0.05)
    print(max(looked_at), len(loaded))

asyncio.run(asyncio.wait_for(main(), 30))
"""


def test_much_garbage_that_was_in_use_for_long_is_found_without_a_look_at_what_the_start_has_loaded():
    done = subprocess.run([sys.executable, "-c", OLD_GARBAGE], capture_output=True, text=True, check=True)
    looked_at, loaded = map(int, done.stdout.split())
    assert looked_at < loaded


AT_A_TIME = """
import asyncio, gc
from collections import deque
from isvc.wire.allocator import settle_memory

async def main():
    settle_memory(lambda: 0)
    looked_at, kept = [], deque(maxlen=20_000)  # old objects are freed while new ones are made
    look = lambda info: sum(len(gc.get_objects(generation=each)) for each in range(info["generation"] + 1))
    gc.callbacks.append(lambda phase, info: looked_at.append(look(info)) if phase == "start" else None)
    before = sum(each["collected"] for each in gc.get_stats())
    for number in range(200_000):
        kept.append([number])
        cycle = []
        cycle.append(cycle)
    print(max(looked_at), sum(each["collected"] for each in gc.get_stats()) - before)

asyncio.run(main())
"""


def test_the_collector_looks_at_few_objects_at_a_time_and_finds_new_garbage():
    done = subprocess.run([sys.executable, "-c", AT_A_TIME], capture_output=True, text=True, check=True)
    looked_at, collected = map(int, done.stdout.split())
    assert looked_at < 5_000
    assert collected > 190_000


@pytest.mark.parametrize(
    ("used", "was_idle", "is_returned"),
    [(0.0, False, True), (0.0, True, False), (10.0, True, False), (10.0, False, False)],
    ids=["work has ended", "at rest", "work begins", "work goes on"],
)
async def test_memory_is_returned_when_work_has_ended_and_not_looked_for_at_rest(
    monkeypatch, used, was_idle, is_returned
):
    returned = []
    monkeypatch.setattr(allocator, "return_freed_memory", lambda: returned.append(True))
    used_before, blocks = time.process_time() - used, sys.getallocatedblocks()
    allocator._look_after_memory(lambda: 0, blocks, 60.0, used_before, was_idle=was_idle)
    assert bool(returned) == is_returned


@pytest.mark.parametrize(
    ("more", "live", "used", "is_collected"),
    [
        (0, 0, 0.0, False),
        (600_000, 0, 0.0, True),
        (600_000, 20_000, 0.0, False),
        (600_000, 0, 10.0, False),
        (3_000_000, 0, 10.0, True),
    ],
    ids=["as after the start", "nothing explains it", "objects explain it", "in use while there is work", "too much"],
)
async def test_a_look_at_all_objects_needs_a_reason(more, live, used, is_collected):
    """Everything waits for it, the longer the more objects there are."""
    before, explained = gc.get_stats()[2]["collections"], sys.getallocatedblocks() - more
    allocator._look_after_memory(lambda: live, explained, 60.0, time.process_time() - used, was_idle=True)
    assert gc.get_stats()[2]["collections"] - before == is_collected
