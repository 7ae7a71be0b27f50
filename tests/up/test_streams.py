"""kubectl exec, attach, cp and port-forward into pods of `isvc up`, as WebSockets and as SPDY."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import termios
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.up.machine import Machine, until
from tests.up.test_pods import SERVER, pod

FILES = SERVER.format("http.server.SimpleHTTPRequestHandler").replace("HTTPServer", "ThreadingHTTPServer")
WITHOUT_WEBSOCKETS = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false", "KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"}
protocols = pytest.mark.parametrize("protocol", [{}, WITHOUT_WEBSOCKETS], ids=["websocket", "spdy"])


@pytest.fixture(scope="module")
def here(here: Machine) -> Machine:
    web = pod("web", FILES, ports=[{"containerPort": 8080}], env=[{"name": "WHO", "value": "me"}])
    web["spec"]["volumes"] = [{"name": "data", "emptyDir": {}}]
    web["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    here.apply(web)
    here.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    return here


def exec_(here: Machine, *words: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    command = ["kubectl", "exec", *(["-i"] if stdin is not None else []), *words]
    return subprocess.run(command, env={**here.env, **env}, input=stdin, capture_output=True, text=True, timeout=60)


def is_running(mark: str) -> bool:
    """Whether a process on this machine has a word in its command line."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[-2:-1] == [mark.encode()] and words[0] != b"kubectl":
                return True
    return False


@protocols
def test_a_command_has_the_containers_environment_and_its_own_streams(here, protocol):
    # Of several containers, once kubectl debug has added some, kubectl would say which one it takes.
    named = ("web", "-c", "c")
    done = exec_(here, *named, "--", "sh", "-c", "echo out $WHO; echo err >&2; exit 3", **protocol)
    assert done.returncode == 3
    assert done.stdout == "out me\n"
    assert done.stderr == "err\ncommand terminated with exit code 3\n"
    large = "line of text\n" * 100_000
    assert exec_(here, "web", "--", "cat", stdin=large, **protocol).stdout == large
    missing = exec_(here, "web", "--", "no-such-program", **protocol)
    assert missing.returncode == 1
    assert "no-such-program: no such file or directory" in missing.stderr
    assert "container d is not valid for pod web" in exec_(here, "web", "-c", "d", "--", "ls", **protocol).stderr


def use_shell(here: Machine, *kubectl: str, **env: str) -> int:
    """The exit code of a kubectl in a terminal, after what a terminal is good for was tried in the shell behind it."""
    process, ours = pty.fork()
    if process == 0:
        os.execvpe("kubectl", ["kubectl", *kubectl], {**here.env, **env})
    said = b""

    def hears(pattern: str) -> bool:
        nonlocal said
        with contextlib.suppress(BlockingIOError):
            said += os.read(ours, 1 << 16)
        return re.search(pattern.encode(), said) is not None

    os.set_blocking(ours, False)
    try:
        until(lambda: os.write(ours, b"\n") and hears(r"[#$] "), "a prompt", every=0.2)
        os.write(ours, b"tty\n")
        until(lambda: hears(r"/dev/(pts/|tty)"), "a terminal")
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 41, 123, 0, 0))
        os.kill(process, signal.SIGWINCH)
        until(lambda: os.write(ours, b"stty size\n") and hears("41 123"), "the new size", every=0.2)
        os.write(ours, b"sleep 4711\n")
        until(lambda: is_running("4711"), "the command to run")
        os.write(ours, b"\x03")
        until(lambda: not is_running("4711"), "Ctrl-C to reach it")
        os.write(ours, b"exit 5\n")
        _, status = os.waitpid(process, 0)
        return os.waitstatus_to_exitcode(status)
    finally:
        os.close(ours)


@protocols
def test_a_terminal_is_one_and_follows_the_size_of_the_clients(here, protocol):
    assert use_shell(here, "exec", "-it", "web", "--", "sh", **protocol) == 5


def test_a_containers_own_terminal_is_attached_to(here):
    shell = pod("shell", "import os; os.execvp('sh', ['sh'])", stdin=True, tty=True)
    shell["spec"]["restartPolicy"] = "Never"
    here.apply(shell)
    here.kubectl("wait", "--for=condition=Ready", "pod/shell", "--timeout=60s")
    assert use_shell(here, "attach", "-it", "shell") == 0
    ended = "{.status.containerStatuses[0].state.terminated.exitCode}"
    here.kubectl("wait", f"--for=jsonpath={ended}=5", "pod/shell", "--timeout=60s")


@protocols
def test_input_of_attached_clients_reaches_the_container(here, protocol):
    name = "echo-spdy" if protocol else "echo"
    here.apply(pod(name, "import os; os.execvp('cat', ['cat'])", stdin=True))
    here.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")
    command = ["kubectl", "attach", "-q", "-i", name]
    for line in ("from the first client\n", "from the second client\n"):
        with subprocess.Popen(
            command, env={**here.env, **protocol}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdin.write(line)
            client.stdin.flush()
            assert client.stdout.readline() == line
            client.kill()


def test_a_pod_that_is_run_with_input_ends_with_it(here):
    command = ["kubectl", "run", "once", "-q", "-i", "--rm", "--restart=Never", "--pod-running-timeout=2m"]
    command += ["--image=python", "--command", "--", "wc", "-l"]
    lines = "line of text\n" * 10_000
    done = subprocess.run(command, env=here.env, input=lines, capture_output=True, text=True, timeout=180)
    assert done.stdout.split() == ["10000"], done.stderr
    assert done.returncode == 0
    assert here.kubectl("get", "pod", "once", "--ignore-not-found") == ""


def debug(here: Machine, *words: str, stdin: str = "") -> str:
    command = ["kubectl", "debug", "--profile=general", *words]
    done = subprocess.run(command, env=here.env, input=stdin, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ephemeral_states(here: Machine, name: str) -> dict[str, dict]:
    return {each["name"]: each["state"] for each in here.get("pod", name)["status"]["ephemeralContainerStatuses"]}


def test_a_debugging_container_is_a_shell_beside_the_pod(here):
    assert use_shell(here, "debug", "-it", "web", "--image=busybox", "-c=shell", "--profile=general") == 0
    assert debug(here, "web", "-qi", "--image=ubuntu", "-c=lines", "--", "head", "-1", stdin="hello\n") == "hello\n"
    until(lambda: all("terminated" in state for state in ephemeral_states(here, "web").values()), "both to end")
    states = ephemeral_states(here, "web")  # with those that other tests left, which cannot be removed from a pod
    assert [states[name]["terminated"]["exitCode"] for name in ("shell", "lines")] == [5, 0]
    here.kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")


def test_a_debugging_container_that_cannot_run_says_why(here):
    unknown = 'no local program is known for image "example.com/nobody/knows"'
    assert unknown in debug(here, "web", "-i", "--image=example.com/nobody/knows", "-c=unknown")
    assert unknown in ephemeral_states(here, "web")["unknown"]["terminated"]["message"]
    over = pod("over", "pass", restart="Never")
    here.apply(over)
    here.kubectl("wait", "pod/over", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    assert "none of whose containers run" in debug(here, "over", "-i", "--image=busybox")


def test_files_are_copied_both_ways_under_the_names_of_the_container(here, tmp_path):
    folder = tmp_path / "there"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a file").write_text("contents")
    here.kubectl("cp", str(folder), "web:/data/copy")
    assert exec_(here, "web", "--", "cat", "/data/copy/deep/a file").stdout == "contents"
    here.kubectl("cp", "web:/data/copy", str(tmp_path / "back"))
    assert (tmp_path / "back" / "deep" / "a file").read_text() == "contents"


@contextlib.contextmanager
def forwarded(here: Machine, port: int, **env: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = ["kubectl", "port-forward", "web", f":{port}", "--address", "127.0.0.1"]
    process = subprocess.Popen(
        command, env={**here.env, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+) -> ", process.stdout.readline())
        assert found
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


@protocols
def test_a_port_is_forwarded(here, protocol):
    exec_(here, "web", "--", "sh", "-c", "head -c 3000000 /dev/zero > large; echo hello > small")
    with forwarded(here, 8080, **protocol) as (_, port):
        url = f"http://127.0.0.1:{port}"
        with socket.create_connection(("127.0.0.1", port)) as idle:  # one of many
            assert urllib.request.urlopen(f"{url}/small").read() == b"hello\n"
            assert len(urllib.request.urlopen(f"{url}/large").read()) == 3_000_000
            idle.sendall(b"GET /small HTTP/1.0\r\n\r\n")
            idle.shutdown(socket.SHUT_WR)
            with idle.makefile("rb") as answer:
                assert answer.read().endswith(b"hello\n")
        with socket.create_connection(("127.0.0.1", port)) as cut:
            cut.sendall(b"GET /large HTTP/1.0\r\n\r\n")
            cut.recv(1)
        assert urllib.request.urlopen(f"{url}/small").read() == b"hello\n"


def test_a_port_that_the_pod_does_not_have_is_refused(here):
    with forwarded(here, 22) as (process, port), socket.create_connection(("127.0.0.1", port)) as connection:
        assert connection.recv(1) == b""
        assert process.stdout is not None
        said = process.stdout.readline() + process.stdout.readline()
        assert "the pod's containers declare no port 22 (they declare: 8080)" in said


@protocols
def test_nothing_is_left_of_a_client_that_was_killed(here, protocol):
    script = "sleep 4712 & setsid sleep 4713 & sleep 4714"
    flood = subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE)
    command = ["kubectl", "exec", "-i", "web", "--", "sh", "-c", script]
    client = subprocess.Popen(command, env={**here.env, **protocol}, stdin=flood.stdout)
    marks = ("4712", "4713", "4714")
    try:
        until(lambda: all(is_running(mark) for mark in marks), "the command to run")
    finally:
        client.kill()
        client.wait()
        flood.kill()
        flood.communicate()
    until(lambda: not any(is_running(mark) for mark in marks), "its processes to end")


def test_a_command_ends_with_its_container_and_attached_clients_hear_the_end(here):
    here.apply(pod("brief", "import time\nwhile True: print('tick'); time.sleep(0.1)"))
    here.kubectl("wait", "--for=condition=Ready", "pod/brief", "--timeout=60s")
    command = ["kubectl", "exec", "brief", "--", "sleep", "4715"]
    within = subprocess.Popen(command, env=here.env, stderr=subprocess.PIPE, text=True)
    attached = subprocess.Popen(["kubectl", "attach", "brief"], env=here.env, stdout=subprocess.PIPE, text=True)
    assert attached.stdout is not None
    assert attached.stdout.readline() == "tick\n"
    until(lambda: is_running("4715"), "the command to run")
    here.kubectl("delete", "pod", "brief", "--timeout=60s")
    assert "exit code 137" in within.communicate(timeout=60)[1]
    attached.communicate(timeout=60)
    assert not is_running("4715")


def test_the_python_client_executes_and_forwards(here):
    from kubernetes import client as k8s
    from kubernetes import config
    from kubernetes.stream import portforward, stream

    api = k8s.CoreV1Api(config.new_client_from_config(config_file=str(here.kubeconfig)))
    command = ["sh", "-c", "read line; echo got $line; read line; exit 7"]
    streams = {"stdin": True, "stdout": True, "stderr": True, "tty": False}
    where = api.connect_get_namespaced_pod_exec
    within = stream(where, "web", here.namespace, command=command, _preload_content=False, **streams)
    within.write_stdin("this\n")
    assert within.readline_stdout(timeout=30) == "got this"  # which this client gives only while the stream is open
    within.write_stdin("that\n")
    within.run_forever(timeout=30)
    assert within.returncode == 7
    ports = portforward(api.connect_get_namespaced_pod_portforward, "web", here.namespace, ports="8080")
    connection = ports.socket(8080)
    connection.sendall(b"GET /data HTTP/1.0\r\n\r\n")
    assert connection.recv(12).startswith(b"HTTP/1.0 404")
    connection.close()
