from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from isvc.local.home import AlreadyRunning, Home, Running, UnsafeHome
from isvc.local.node.processes.logs import Log
from isvc.wire.private_files import open_private

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


def test_a_folder_whose_path_is_too_long_for_a_socket_has_none(tmp_path):
    assert Home(tmp_path / ("x" * 100)).api_socket == ""
    assert Home(Path("/home/me/.isvc")).api_socket == "/home/me/.isvc/run/apiserver.sock"


def test_only_one_holds_it_and_others_know_who(home):
    with home.lock():
        assert home.holder() == os.getpid()
        assert home.find_running() is None  # not ready yet
        home.report(RUNNING)
        assert home.find_running() == RUNNING
        with pytest.raises(AlreadyRunning, match="pid 7") as error, home.lock():
            pass
        assert error.value.running == RUNNING
    assert home.holder() is None
    assert home.find_running() is None


def test_a_killed_holder_holds_nothing(home):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(home.root)], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert home.holder() == holder.pid
    finally:
        holder.kill()
        holder.communicate()
    assert home.holder() is None
    with home.lock():
        pass


def test_who_asks_is_in_nobodys_way(home):
    """Neither of a start, nor of others who ask and would take the process that held it last for running."""
    with home.lock():
        pass
    asked = threading.Event()

    def ask() -> None:
        while not asked.is_set():
            home.holder()

    with home._lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert home.holder() is None
    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for _ in range(100):
            with home.lock():
                pass
    finally:
        asked.set()
        asking.join()


def test_nobody_else_can_look_inside(home):
    assert home.root.stat().st_mode & 0o077 == 0


def test_a_folder_that_everybody_can_write_to_is_refused(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    with pytest.raises(UnsafeHome, match="every user can write"):
        Home(tmp_path / "shared").prepare()
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(tmp_path, monkeypatch):
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(UnsafeHome, match="another user"):
        Home(tmp_path / "theirs").prepare()


@pytest.mark.parametrize("mode", [0o775, 0o755, 0o750, 0o711])
def test_what_others_may_do_in_it_is_taken_away(tmp_path, mode):
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours").chmod(mode)
    Home(tmp_path / "ours").prepare()
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "command",
    [
        ("-m", "isvc.local.examples"),
        ("-c", "from isvc.cli import main; main()", "runtime", "add", "mine", "--requirements", os.devnull),
    ],
)
def test_whoever_makes_it_first_makes_it_private(tmp_path, command):
    home = tmp_path / "home"
    done = subprocess.run(
        [sys.executable, "-P", *command], env={**os.environ, "ISVC_HOME": str(home)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert home.stat().st_mode & 0o777 == 0o700


def test_logs_are_private_even_if_they_were_not(tmp_path):
    path = tmp_path / "isvc.log"
    path.write_text("before\n")
    path.chmod(0o644)
    with open_private(path, "a") as log:
        log.write("after\n")
    assert path.read_text() == "before\nafter\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_in_place_of_a_log_is_not_followed(tmp_path):
    (tmp_path / "theirs").write_text("precious")
    (tmp_path / "isvc.log").symlink_to(tmp_path / "theirs")
    with pytest.raises(OSError, match="symbolic links"):
        open_private(tmp_path / "isvc.log", "a")


def test_logs_of_containers_are_private(tmp_path):
    log = Log(tmp_path / "pod" / "0.log")
    log.close()
    assert log.path.stat().st_mode & 0o777 == 0o600
