"""Real processes under a policy: what they can reach and what they cannot, on a kernel that confines."""

from __future__ import annotations

import http.server
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ports import free_port

from isvc.local.node.containers.sandbox import Sandbox, private_folders
from isvc.local.node.processes.process import _before_the_program
from isvc.local.node.programs.images import STORAGE_INITIALIZER, Program
from isvc.local.node.sandbox import landlock
from isvc.local.node.sandbox.policy import Policy, confinement, programs, shortcomings, why_not

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "confines")

TRY = """
import json, sys
results = {}
for name, code in json.loads(sys.argv[1]).items():
    try:
        exec(code)
        results[name] = "done"
    except OSError as error:
        results[name] = type(error).__name__
print(json.dumps(results))
"""


def attempt(policy: Policy, **codes: str) -> dict[str, str]:
    """Run pieces of Python in one confined process; what became of each."""
    with confinement(policy) as confine:
        ended = subprocess.run(
            [sys.executable, "-c", TRY, json.dumps(codes)],
            preexec_fn=_before_the_program(confine),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert ended.returncode == 0, ended.stderr
    results: dict[str, str] = json.loads(ended.stdout)
    return results


@pytest.fixture
def own(tmp_path: Path) -> Path:
    folder = (tmp_path / "own").resolve()
    folder.mkdir()
    return folder


def policy(own: Path, **more: object) -> Policy:
    return Policy(readable=programs(), writable=(own,), **more)  # type: ignore[arg-type]


def test_files(own: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("precious")
    (own / "link").symlink_to(secret)
    found = attempt(
        policy(own),
        write=f"open({str(own / 'new')!r}, 'w').write('x')",
        rename=f"import os; os.rename({str(own / 'new')!r}, {str(own / 'newer')!r})",
        read_system="open('/etc/hosts').read()",
        write_nowhere="open('/dev/null', 'w').write('x')",
        read_secret=f"open({str(secret)!r}).read()",
        write_secret=f"open({str(secret)!r}, 'w')",
        through_a_link=f"open({str(own / 'link')!r}).read()",
        list_home=f"import os; os.listdir({str(Path.home())!r})",
        write_system="open('/etc/isvc-test', 'w')",
        truncate=f"import os; os.truncate({str(secret)!r}, 0)",
        link_out=f"import os; os.link({str(secret)!r}, {str(own / 'hard')!r})",
    )
    allowed = {name for name, result in found.items() if result == "done"}
    assert allowed == {"write", "rename", "read_system", "write_nowhere"}
    assert secret.read_text() == "precious"


def test_what_is_read_only_stays_so(own: Path) -> None:
    (own / "config").write_text("x")
    found = attempt(
        Policy(readable=(*programs(), own)),
        read=f"open({str(own / 'config')!r}).read()",
        write=f"open({str(own / 'config')!r}, 'w')",
        remove=f"import os; os.unlink({str(own / 'config')!r})",
    )
    assert found == {"read": "done", "write": "PermissionError", "remove": "PermissionError"}


@pytest.fixture
def listener() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.skipif(landlock.abi() < landlock.PORTS_ABI, reason="the kernel does not confine ports")
def test_ports(own: Path, listener: int) -> None:
    mine, other = free_port(), free_port()
    connect = "import socket; socket.create_connection(('127.0.0.1', {}), 5).close()"
    bind = "import socket; s = socket.socket(); s.bind(('127.0.0.1', {}))"
    codes = {"connect": connect.format(listener), "bind_mine": bind.format(mine), "bind_other": bind.format(other)}
    refused = attempt(policy(own, listens=(mine,)), **codes)
    assert refused == {"connect": "PermissionError", "bind_mine": "done", "bind_other": "PermissionError"}
    assert attempt(policy(own, connects=(listener,)), connect=codes["connect"]) == {"connect": "done"}
    assert attempt(policy(own, connects=None), connect=codes["connect"]) == {"connect": "done"}


@pytest.mark.skipif(landlock.abi() < landlock.PORTS_ABI, reason="the kernel does not confine ports")
@pytest.mark.parametrize("protocol", ["IPPROTO_MPTCP", "IPPROTO_TCP"])
@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_no_other_way_leads_to_a_port(own: Path, listener: int, family: str, protocol: str) -> None:
    host = {"AF_INET": "127.0.0.1", "AF_INET6": "::ffff:127.0.0.1"}[family]
    opened = f"import socket; s = socket.socket(socket.{family}, socket.SOCK_STREAM, socket.{protocol}); there = "
    opened += repr((host, listener))
    codes = {
        "connect": f"{opened}; s.connect(there)",
        "sendto": f"{opened}; s.sendto(b'x', socket.MSG_FASTOPEN, there)",
        "sendmsg": f"{opened}; s.sendmsg([b'x'], [], socket.MSG_FASTOPEN, there)",
    }
    assert attempt(policy(own), **codes) == dict.fromkeys(codes, "PermissionError")


def test_other_families_of_sockets_and_keys_of_the_user(own: Path) -> None:
    keyctl = {"x86_64": 250, "aarch64": 219}[platform.machine()]
    keys = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True)\n"
    keys += f"if c.syscall({keyctl}, 0, -4, 0) < 0: raise OSError(ctypes.get_errno(), 'keyctl')"
    found = attempt(
        policy(own),
        virtual="import socket; socket.socket(socket.AF_VSOCK)",
        crypto="import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)",
        keys=keys,
        names="import socket; socket.getaddrinfo('localhost', 80)",
        datagram="import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    )
    refused = dict.fromkeys(("virtual", "crypto", "keys"), "PermissionError")
    assert found == {**refused, "names": "done", "datagram": "done"}


def test_netlink_tells_of_interfaces_alone(own: Path) -> None:
    opened = "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, {})"
    others = {f"other_{number}": opened.format(number) for number in (4, 9, 12, 15, 16)}  # sockets, audit, events, …
    found = attempt(policy(own), interfaces=opened.format(0), names="import socket; socket.if_nameindex()", **others)
    assert found == {**dict.fromkeys(others, "PermissionError"), "interfaces": "done", "names": "done"}


def test_no_namespace_is_made_or_entered(own: Path) -> None:
    """As root of one a process gets at parts of the kernel that nobody has looked at with strangers in mind."""
    clone, unshare, setns = {"x86_64": (56, 272, 308), "aarch64": (220, 97, 268)}[platform.machine()]
    user, mount, files, child = 0x10000000, 0x00020000, 0x00000400, 17  # the last is its signal

    def call(number: int, *arguments: object) -> str:
        return (
            "import ctypes, os; c, me = ctypes.CDLL(None, use_errno=True), os.getpid()\n"
            "here = os.open('/proc/self/ns/net', os.O_RDONLY)\n"
            f"answer = c.syscall({number}, {', '.join(map(str, arguments))})\n"
            "if os.getpid() != me: os._exit(0)  # the child\n"
            "if answer < 0: raise OSError(ctypes.get_errno(), 'refused')"
        )

    refused = {
        "clone": call(clone, user | child, 0, 0, 0, 0),
        "unshare": call(unshare, user),
        "unshare_others": call(unshare, mount),
        "enter": call(setns, "here", 0),
    }
    usual = {
        "own_files": call(unshare, files),
        "thread": "import threading; t = threading.Thread(target=sorted, args=('',)); t.start(); t.join()",
        "child": "import subprocess; subprocess.run(['true'], check=True)",
    }
    expected = {**dict.fromkeys(refused, "PermissionError"), **dict.fromkeys(usual, "done")}
    assert attempt(policy(own), **refused, **usual) == expected


def test_unix_sockets_are_no_way_out(own: Path) -> None:
    path, pair = own / "agent", "import socket; a, b = socket.socketpair(socket.AF_UNIX, socket."
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(path))
        found = attempt(
            policy(own),
            connect=f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})",
            datagram=f"{pair}SOCK_DGRAM); a.sendto(b'x', {str(path)!r})",  # of a pair, and yet to anybody
            raw=f"{pair}SOCK_RAW); a.sendto(b'x', {str(path)!r})",  # which is one of datagrams
            pair=f"{pair}SOCK_STREAM | socket.SOCK_NONBLOCK); a.send(b'x'); assert b.recv(1) == b'x'",
            packets=f"{pair}SOCK_SEQPACKET); a.send(b'x'); assert b.recv(1) == b'x'",
            internet="import socket; socket.socket(socket.AF_INET)",
        )
    refused = dict.fromkeys(("connect", "datagram", "raw"), "PermissionError")
    assert found == {**refused, "pair": "done", "packets": "done", "internet": "done"}


@pytest.mark.skipif(landlock.abi() < landlock.SIGNALS_ABI, reason="the kernel does not confine signals")
def test_other_processes(own: Path) -> None:
    with subprocess.Popen(["sleep", "600"], env={"SECRET": "x"}) as other:
        found = attempt(
            policy(own),
            kill=f"import os; os.kill({other.pid}, 15)",
            environ=f"open('/proc/{other.pid}/environ').read()",
            slow=f"import os; os.setpriority(os.PRIO_PROCESS, {other.pid}, 19)",
            slow_group="import os; os.setpgrp(); os.setpriority(os.PRIO_PGRP, 0, 1)",
            last=f"import os; os.sched_setscheduler({other.pid}, os.SCHED_IDLE, os.sched_param(0))",
            limit=f"import resource; resource.prlimit({other.pid}, resource.RLIMIT_NOFILE, (64, 64))",
            own_limit="import os, resource; os.nice(1); resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))",
            own_child="import subprocess; p = subprocess.Popen(['sleep', '60']); p.kill(); p.wait()",
        )
        assert other.poll() is None
        other.send_signal(signal.SIGKILL)
    refused = dict.fromkeys(("kill", "environ", "slow", "slow_group", "last", "limit"), "PermissionError")
    assert found == {**refused, "own_limit": "done", "own_child": "done"}


def test_children_are_confined_as_well(own: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("precious")
    code = f"import subprocess; subprocess.run(['cat', {str(tmp_path / 'secret')!r}], check=True, capture_output=True)"
    with confinement(policy(own)) as confine:
        ended = subprocess.run([sys.executable, "-c", code], preexec_fn=confine, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "CalledProcessError" in ended.stderr


def test_a_link_in_place_of_a_folder_grants_nothing(own: Path, tmp_path: Path) -> None:
    """A container may put a link where a volume's folder was, between two starts."""
    (tmp_path / "link").symlink_to(Path.home())
    with pytest.raises(PermissionError, match="link"), confinement(Policy(writable=(tmp_path.resolve() / "link",))):
        pass


# -- from a manifest to a policy --------------------------------------------------------------------------------------

POD = {
    "spec": {
        "volumes": [
            {"name": "scratch", "emptyDir": {}},
            {"name": "config", "configMap": {"name": "c"}},
            {"name": "models", "persistentVolumeClaim": {"claimName": "m"}},
        ]
    }
}
SPEC = {
    "volumeMounts": [
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "config", "mountPath": "/config"},
        {"name": "models", "mountPath": "/models", "readOnly": True},
    ]
}


def policy_of(folder: Path, program: Program, command: list[str]) -> Policy:
    mounts = {f"/{name}": str(folder / "volumes" / name) for name in ("scratch", "config", "models")}
    return Sandbox((8080,)).policy(
        POD, SPEC, program, command, folder=folder, mounts=mounts, ports=[9000], termination_log=folder / "log"
    )


def test_a_container_writes_to_its_own_volumes(own: Path) -> None:
    made = policy_of(own, Program(), [sys.executable])
    assert set(made.writable) == {*private_folders(own).values(), own / "log", own / "volumes" / "scratch"}
    assert {own, own / "volumes" / "config", own / "volumes" / "models"} <= set(made.readable)
    assert (made.listens, made.connects) == ((9000,), (8080, 443))
    assert Path.home() not in made.readable


def test_the_storage_initializer_reads_what_it_copies(own: Path, tmp_path: Path) -> None:
    model = tmp_path / "my model"
    command = [sys.executable, "-m", "isvc.pods.storage_initializer", f"file://{tmp_path}/my%20model", "/mnt"]
    made = policy_of(own, STORAGE_INITIALIZER, command)
    assert model in made.readable
    assert made.connects is None
    assert model not in policy_of(own, Program(), command).readable


def test_the_storage_initializer_fills_a_volume(own: Path, tmp_path: Path) -> None:
    """It may write into the volume and not beside it, where it would otherwise put what is not complete."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("w")
    volume = own / "volumes" / "scratch"
    volume.mkdir(parents=True)
    command = [*STORAGE_INITIALIZER.command, f"file://{tmp_path}/model", str(volume)]
    with confinement(policy_of(own, STORAGE_INITIALIZER, command)) as confine:
        ended = subprocess.run(command, preexec_fn=confine, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in volume.iterdir()] == ["weights"]


@pytest.mark.parametrize("first", ["", "{here}"])
def test_the_folder_that_isvc_is_started_in_is_not_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [first.format(here=tmp_path), *sys.path[1:]])
    assert tmp_path.resolve() not in programs()


def test_the_users_programs_can_be_run(own: Path) -> None:
    made = policy_of(own, Program(("python", "/srv/mine/server.py"), working_dir="/srv/mine"), [sys.executable])
    assert {Path("/srv/mine"), Path("/srv/mine/server.py")} <= set(made.readable)


# -- machines that cannot ---------------------------------------------------------------------------------------------


def test_what_a_machine_cannot_do_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    assert "Landlock" in why_not()
    monkeypatch.setattr(landlock, "abi", lambda: 3)
    assert why_not() == ""
    assert len(shortcomings()) == 2
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "needs Linux" in why_not()


def test_isvc_up_refuses_to_start_unconfined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from isvc.cli.up import command

    monkeypatch.setattr(landlock, "abi", lambda: 0)
    monkeypatch.setenv("ISVC_HOME", str(tmp_path / "home"))
    ended = CliRunner().invoke(command, ["--sandbox"])
    assert ended.exit_code == 1
    assert "cannot be confined" in ended.output
    assert not os.path.exists(tmp_path / "home")
