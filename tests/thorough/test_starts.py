"""Starts of `isvc up` that go otherwise: ports that are taken, no files of its own, a stop halfway."""

from __future__ import annotations

import json
import os
import pty
import resource
import shutil
import signal
import socket
import subprocess
from functools import partial
from urllib.parse import urlsplit

import pytest
from tests.up.machine import ANY_PORTS, DEADLINE, ISVC, Machine, machine, strange_pod, until


@pytest.fixture
def here(models, tmp_path):
    fresh = machine(tmp_path, models)
    yield fresh
    fresh.stop()
    until(lambda: fresh.processes() == [], "all processes to end")


def test_ports_and_a_memory_that_forgets(here):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        gateway, dashboard = (
            here.isvc("up", flag, str(taken.getsockname()[1])) for flag in ("--port", "--dashboard-port")
        )
    assert (gateway.returncode, dashboard.returncode) == (1, 1)
    assert "cannot use port" in gateway.stderr
    assert dashboard.stderr.startswith("Error: cannot use port")
    assert dashboard.stdout == ""  # before anything is started
    here.start("--ephemeral", "--simulate")
    here.apply(strange_pod())
    here.kubectl("wait", "--for=condition=Ready", "pod/strange", "--timeout=60s")
    here.stop()
    here.start("--ephemeral")
    assert "NotFound" in here.kubectl("get", "pod", "strange", check=False)


def test_the_first_request_for_an_llm_after_kill_9_waits_for_its_pod(here):
    here.start()
    here.apply(here.example("llm.yaml"))
    here.kubectl("wait", "--for=condition=Ready", "llmisvc/smollm2", f"--timeout={DEADLINE:.0f}s")
    path = urlsplit(here.get("llmisvc", "smollm2")["status"]["url"]).path
    here.process.kill()
    here.process.wait()
    here.start()
    asked = json.dumps({"messages": [{"role": "user", "content": "Say yes."}], "max_tokens": 2})
    answer = here.run("curl", "-sS", f"{here.gateway}{path}/v1/chat/completions", "-d", asked)
    assert json.loads(answer).get("choices"), answer


def test_it_can_be_stopped_while_it_starts(here):
    for part in ("programs", "API server", "kinds"):
        here.process = here.launch("--warm-up")  # frameworks are being imported, too
        until(partial(has_printed, here, part), part)
        here.process.send_signal(signal.SIGINT)
        until(partial(has_printed, here, "stopping"), "it to stop")
        here.process.send_signal(signal.SIGINT)  # pressed again while it stops
        assert here.process.wait(60) == 0
        until(lambda: here.processes() == [], "all processes to end")
        assert not has_printed(here, "Traceback")
    here.start()


def test_it_ends_with_its_terminal_as_by_a_signal_unless_that_is_ignored(here):
    terminal, its_side = pty.openpty()
    own_terminal = ("setsid", "--ctty")  # which is that of the standard input
    no_nohup = ("env", "--default-signal=HUP")  # which whoever runs the tests may have used
    command = [*own_terminal, *no_nohup, *ISVC, "up", *ANY_PORTS, "--no-warm-up"]
    here.process = subprocess.Popen(command, env=here.env, stdin=its_side, stdout=its_side, stderr=its_side)
    os.close(its_side)
    shown = b""
    while b"iris-input.json" not in shown:  # the last word
        shown += os.read(terminal, 4096)
    os.close(terminal)
    assert here.process.wait(60) == 0
    here.start(prefix=("nohup",))
    here.process.send_signal(signal.SIGHUP)
    here.apply(strange_pod())
    until(lambda: here.get("pod", "strange")["status"].get("containerStatuses"), "the node to go on")


def test_it_ends_when_its_home_is_moved_away(here, tmp_path):
    here.start()
    assert here.process is not None
    here.home.rename(tmp_path / "elsewhere")
    assert here.process.wait(60) == 1
    assert has_printed(here, f"isvc up: {here.home} is gone")
    assert not has_printed(here, "Traceback")


@pytest.mark.parametrize(("allowed", "told"), [(200, "only 200 files may be open here"), (1024, "")])
def test_few_open_files_are_told_or_more_asked_for(here, allowed, told):
    limits = ("sh", "-c", f'ulimit -Sn 100; ulimit -Hn {allowed}; exec "$@"', "sh")
    here.process = here.launch(prefix=limits)
    until(lambda: here.process.poll() is not None or has_printed(here, "ready in"), "a start or none")
    assert has_printed(here, told or "ready in")
    if not told:
        assert resource.prlimit(here.process.pid, resource.RLIMIT_NOFILE) == (allowed, allowed)


def test_the_first_service_waits_for_its_model(here):
    """The examples' models are made after the start: nobody is told meanwhile that they are missing."""
    shutil.rmtree(here.claim)
    here.start()
    here.apply(here.example("iris.yaml"))
    waited = here.isvc("wait", "iris")
    assert waited.returncode == 0, waited.stderr
    assert "there is no iris" not in here.kubectl("get", "events")


def test_bytecode_is_kept_whatever_the_shell_wants(here, tmp_path):
    """Both programs of ours would compile hundreds of modules at every start."""
    here.env.update(PYTHONDONTWRITEBYTECODE="1", PYTHONPYCACHEPREFIX=str(tmp_path / "bytecode"))
    here.start()
    kept = [str(path) for path in (tmp_path / "bytecode").rglob("*.pyc")]
    for module in ("/isvc/local/parts.", "/isvc/apiserver/server."):
        assert any(module in path for path in kept), kept


def has_printed(here: Machine, text: str) -> bool:
    return text in here.output.read_text()
