from __future__ import annotations

import os
import subprocess
import sys

import pytest

from isvc.local.home import AlreadyRunning, Home, Running

HOLDER = """
import sys, time
from pathlib import Path
from isvc.local.home import Home
with Home(Path(sys.argv[1])).lock():
    print("held", flush=True)
    time.sleep(600)
"""
RUNNING = Running(7, "https://127.0.0.1:6443", "http://localhost:8080", "/k", "2026-11-15T12:00:00Z")


@pytest.fixture
def home(tmp_path):
    fresh = Home(tmp_path / "home")
    fresh.prepare()
    return fresh


def test_only_one_holds_it_and_others_know_who(home):
    with home.lock():
        assert home.holder() == os.getpid()
        assert home.running() is None  # not ready yet
        home.tell(RUNNING)
        assert home.running() == RUNNING
        with pytest.raises(AlreadyRunning, match="pid 7") as error, home.lock():
            pass
        assert error.value.running == RUNNING
    assert home.holder() is None
    assert home.running() is None


def test_a_killed_holder_holds_nothing(home):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(home.root)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        assert home.holder() == holder.pid
    finally:
        holder.kill()
        holder.communicate()
    assert home.holder() is None
    with home.lock():
        pass


def test_nobody_else_can_look_inside(home):
    assert home.root.stat().st_mode & 0o077 == 0
