"""Processes and their end, with real ones."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.waiting import until

from isvc.local.node.processes import logs
from isvc.local.node.processes.logs import Log, LogOptions, last_lines, read
from isvc.local.node.processes.process import CannotStart, Process, Reaper, run_beside

FORKER = """
import os, sys, time
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()  # a daemon is no longer of its parent's group
    os.write(1, b"%d\\n" % os.getpid())  # in one piece
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
    await until(lambda: len(last_lines(log.path).split()) == 2)
    children = [int(pid) for pid in last_lines(log.path).split()]
    assert all(map(is_alive, children))
    assert process.memory() > 0
    process.terminate()
    await process.wait()
    await until(lambda: not any(map(is_alive, children)))


NODE = """
import asyncio, os, sys
from pathlib import Path
from isvc.local.node.processes import logs
from isvc.local.node.processes.logs import Log
from isvc.local.node.processes.process import Process, Reaper

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
        await until(lambda: len(last_lines(tmp_path / "log").split()) == 2)
    finally:
        node.kill()
        node.wait()
    children = [int(pid) for pid in last_lines(tmp_path / "log").split()]
    leader = int(next((tmp_path / "record").iterdir()).name)
    await until(lambda: not any(map(is_alive, [*children, leader])))


async def test_a_command_beside_leaves_nothing_when_its_time_is_up(reaper, tmp_path):
    env = dict(os.environ)
    assert await run_beside(["sh", "-c", "echo well; exit 2"], env, tmp_path, reaper) == (2, "well\n")
    script = "sleep 600 & echo $! > pid; wait"
    task = asyncio.ensure_future(run_beside(["sh", "-c", script], env, tmp_path, reaper))
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    task.cancel()
    await asyncio.wait((task,))
    await until(lambda: not is_alive(int((tmp_path / "pid").read_text())))
    assert list((tmp_path / "record").iterdir()) == []


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


async def lines(path: Path, **options: Any) -> str:
    return b"".join([chunk async for chunk in read(path, LogOptions(**options))]).decode()


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


async def test_whoever_follows_a_log_misses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "_ROTATE_AT", 2000)
    log = Log(tmp_path / "log")
    for number in range(5):
        log.note(f"line {number}")
    seen = bytearray()

    async def follow():
        async for chunk in read(log.path, LogOptions(follow=True, tail_lines=2), log):
            seen.extend(chunk)
            await asyncio.sleep(0)  # while a client takes its time, more is written

    task = asyncio.create_task(follow())
    for number in range(5, 200):
        log.note(f"line {number}")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    log.close()
    await asyncio.wait_for(task, 30)
    got = [int(line.removeprefix("line ")) for line in seen.decode().splitlines()]
    assert got == list(range(got[0], 200))
    assert (tmp_path / "log.old").exists()


async def test_a_reaper_that_was_killed_is_started_again_and_knows_all_groups(reaper, tmp_path):
    first, _ = await start(reaper, tmp_path, "sleep", "600")
    os.kill(reaper._program.pid, signal.SIGKILL)
    reaper._program.wait()
    second, _ = await start(reaper, tmp_path, "sleep", "600")
    reaper.stop()  # as if the node had ended
    assert await asyncio.gather(first.wait(), second.wait())
