"""The folder in which `isvc up` lives (~/.isvc), and the lock that says it is running."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Final

import orjson

from isvc.wire.private_files import fits_a_socket, write_private

_ASKING: Final = 0.2  # seconds


class AlreadyRunning(Exception):
    """Another `isvc up` holds this folder."""

    def __init__(self, running: Running | None) -> None:
        super().__init__(f"isvc is already running (pid {running.pid})" if running else "isvc is already starting")
        self.running = running


class UnsafeHome(OSError):
    """The folder is not ours alone: others may have put programs into it that pods would run."""


class HomeGone(OSError):
    """Somebody has removed the folder of an `isvc up`, or put another in its place."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a running `isvc up` reports to other commands."""

    pid: int
    api_server: str
    gateway: str
    kubeconfig: str
    started: str
    dashboard: str = ""  # a link that lets in whoever has it
    gateway_tls: str = ""
    gateway_restarts: int = 0  # of Envoy, which had died
    gateway_restarted: str = ""  # when that was last


class _Below:
    """A path below the root of a home."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, home: Home, _: type[Home]) -> Path:
        return home.root.joinpath(*self._parts)


@dataclass(frozen=True, slots=True)
class Home:
    root: Path

    @classmethod
    def default(cls) -> Home:
        return cls(Path(os.environ.get("ISVC_HOME") or Path.home() / ".isvc"))

    kubeconfig = _Below("kubeconfig")
    api_server = _Below("apiserver")
    pki = _Below("apiserver", "pki")
    tls = _Below("tls")  # the authority of the gateway's certificates
    gateway = _Below("run", "gateway")  # the sockets by which we and Envoy reach each other
    logs = _Below("logs")
    claims = _Below("volumes")
    disk = _Below("disk")  # the root of paths that PersistentVolumes name: `/models` is `models` in it
    runtimes = _Below("runtimes")
    examples = _Below("examples")
    processes = _Below("run", "processes")
    _lock = _Below("run", "lock")
    _webhook_ports = _Below("run", "webhook-ports.json")
    _running = _Below("run", "up.json")

    @property
    def api_socket(self) -> str:
        """Where we reach the API server without TLS; nowhere, if the path would be too long for a socket."""
        path = self.root.absolute() / "run" / "apiserver.sock"
        return str(path) if fits_a_socket(path) else ""

    def prepare(self) -> None:
        """Makes the folders, for their owner alone. One that others could have put something into is refused."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = self.root.stat()
        if found.st_uid != os.getuid():
            raise UnsafeHome(f"it belongs to another user (uid {found.st_uid}); choose another folder with ISVC_HOME")
        if found.st_mode & stat.S_IWOTH:
            raise UnsafeHome("every user can write to it; choose another folder with ISVC_HOME, or `chmod go-w` it")
        if stat.S_IMODE(found.st_mode) & 0o077:
            self.root.chmod(0o700)
        for folder in (self.logs, self.claims, self.processes):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the lock for as long as this process lives, however it ends."""
        with self._lock.open("a") as file:
            if not _take(file):
                raise AlreadyRunning(self._report())
            file.truncate(0)
            os.write(file.fileno(), str(os.getpid()).encode())
            try:
                yield
            finally:
                self._running.unlink(missing_ok=True)

    def report(self, running: Running) -> None:
        """Writes where it listens, for other commands to find."""
        write_private(self._running, orjson.dumps(asdict(running)))

    def find_running(self) -> Running | None:
        """Returns the `isvc up` that is ready here now, if there is one."""
        return self._report() if self.holder() is not None else None

    def webhook_ports(self) -> dict[str, int]:
        """Returns the ports of the last start, by the names of the programs."""
        try:
            return {str(name): int(port) for name, port in orjson.loads(self._webhook_ports.read_bytes()).items()}
        except (OSError, ValueError, AttributeError, TypeError):
            return {}

    def keep_webhook_ports(self, ports: Mapping[str, int]) -> None:
        write_private(self._webhook_ports, orjson.dumps(ports))

    def holder(self) -> int | None:
        """Returns the process that holds the lock, whether it is starting, ready or stopping."""
        try:
            with self._lock.open("r") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # not in the way of others who ask
                except BlockingIOError:
                    return int(file.read() or 0)
        except (OSError, ValueError):
            return None
        return None

    def _report(self) -> Running | None:
        try:
            return Running(**orjson.loads(self._running.read_bytes()))
        except (OSError, orjson.JSONDecodeError, TypeError):
            return None


def _take(file: IO[str]) -> bool:
    """Locks a file for us alone, unless somebody holds it for longer than it takes to ask who does."""
    deadline = time.monotonic() + _ASKING
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.001)
