"""Processes and their end, with real ones."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import pytest_asyncio

from isvc.local.node.logs import Log, LogOptions, last_lines, read
from isvc.local.node.process import CannotStart, Process, Reaper

FORKER = """
import os, sys, time
if os.fork() == 0:
    print(os.getpid(), flush=True)
    time.sleep(600)
time.sleep(600)
"""


@pytest_asyncio.fixture
async def reaper(tmp_path):
    reaper = Reaper(tmp_path / "record")
    reaper.start()
    yield reaper
    reaper.stop()


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def until(condition, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


def spawn(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, start_new_session=True)


async def start(reaper, tmp_path, *command) -> tuple[Process, Log]:
    log = Log(tmp_path / "log")
    return await Process.start(command, dict(os.environ), tmp_path, log, reaper), log


async def test_output_and_exit_code(reaper, tmp_path):
    process, log = await start(reaper, tmp_path, "sh", "-c", "echo out; echo err >&2; printf end; exit 3")
    assert (await process.wait()).code == 3
    assert last_lines(log.path) == "out\nerr\nend"
    assert list((tmp_path / "record").iterdir()) == []


async def test_a_signal_is_told_as_128_plus_its_number(reaper, tmp_path):
    process, _ = await start(reaper, tmp_path, "sleep", "600")
    process.terminate()
    ended = await process.wait()
    assert (ended.code, ended.signal) == (143, 15)


async def test_a_program_that_is_not_there(reaper, tmp_path):
    with pytest.raises(CannotStart, match="no such file"):
        await start(reaper, tmp_path, "/no/such/program")


async def test_the_end_of_a_process_ends_its_group(reaper, tmp_path):
    process, log = await start(reaper, tmp_path, sys.executable, "-c", FORKER)
    await until(lambda: last_lines(log.path))
    child = int(last_lines(log.path))
    assert is_alive(child)
    assert process.memory() > 0
    process.terminate()
    await process.wait()
    await until(lambda: not is_alive(child))


NODE = """
import asyncio, os, sys
from pathlib import Path
from isvc.local.node.logs import Log
from isvc.local.node.process import Process, Reaper

async def main():
    home = Path(sys.argv[1])
    reaper = Reaper(home / "record")
    reaper.start()
    log = Log(home / "log")
    await Process.start([sys.executable, "-c", sys.argv[2]], dict(os.environ), home, log, reaper)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_kill_9_of_the_node_leaves_no_process(tmp_path):
    node = spawn([sys.executable, "-c", NODE, str(tmp_path), FORKER])
    try:
        await until(lambda: (tmp_path / "log").exists() and last_lines(tmp_path / "log"))
    finally:
        node.kill()
        node.wait()
    child = int(last_lines(tmp_path / "log"))
    leader = int(next((tmp_path / "record").iterdir()).name)
    await until(lambda: not is_alive(child) and not is_alive(leader))


async def test_strays_are_ended_at_the_next_start(tmp_path):
    record = tmp_path / "record"
    earlier = Reaper(record)
    record.mkdir()
    stray, innocent = spawn(["sleep", "600"]), spawn(["sleep", "600"])
    try:
        earlier.add(stray.pid)
        (record / str(innocent.pid)).write_text("1")  # the number of a process that ended long ago
        assert Reaper(record).kill_strays() == [stray.pid]
        assert stray.wait(30) == -signal.SIGKILL
        assert innocent.poll() is None
        assert list(record.iterdir()) == []
    finally:
        for process in (stray, innocent):
            process.kill()
            process.wait()


async def lines(*args, **options) -> str:
    return b"".join([chunk async for chunk in read(*args, LogOptions(**options))]).decode()


async def test_logs_can_be_read_in_part(tmp_path):
    log = Log(tmp_path / "log")
    log.write(b"one\ntwo\nthr")
    log.write(b"ee\n")
    assert await lines(log.path) == "one\ntwo\nthree\n"
    assert await lines(log.path, tail_lines=1) == "three\n"
    assert await lines(log.path, limit_bytes=5) == "one\nt"
    stamped = await lines(log.path, timestamps=True)
    assert stamped.startswith("20")
    assert stamped.splitlines()[0].endswith("Z one")


async def test_logs_can_be_followed_to_their_end(tmp_path):
    log = Log(tmp_path / "log")
    log.note("one")
    seen = bytearray()

    async def follow():
        async for chunk in read(log.path, LogOptions(follow=True), log):
            seen.extend(chunk)

    task = asyncio.create_task(follow())
    await until(lambda: seen == b"one\n")
    for word in ("two", "three"):
        log.note(word)
        await asyncio.sleep(0)
    await until(lambda: seen == b"one\ntwo\nthree\n")
    log.write(b"end")
    log.close()
    await asyncio.wait_for(task, 30)
    assert seen == b"one\ntwo\nthree\nend\n"
