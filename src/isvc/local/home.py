"""The folder in which `isvc up` lives (~/.isvc), and the lock that says it is running."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson


class AlreadyRunning(Exception):
    """Another `isvc up` holds this folder."""

    def __init__(self, running: Running | None) -> None:
        super().__init__(f"isvc is already running (pid {running.pid})" if running else "isvc is already starting")
        self.running = running


@dataclass(frozen=True, slots=True)
class Running:
    """What a running `isvc up` tells others."""

    pid: int
    api_server: str
    gateway: str
    kubeconfig: str
    started: str


@dataclass(frozen=True, slots=True)
class Home:
    root: Path

    @classmethod
    def default(cls) -> Home:
        return cls(Path(os.environ.get("ISVC_HOME") or Path.home() / ".isvc"))

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def api_server(self) -> Path:
        return self.root / "apiserver"

    @property
    def pki(self) -> Path:
        return self.api_server / "pki"

    @property
    def certificates(self) -> Path:
        return self.root / "webhooks"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def claims(self) -> Path:
        return self.root / "volumes"

    @property
    def examples(self) -> Path:
        return self.root / "examples"

    @property
    def processes(self) -> Path:
        return self.root / "run" / "processes"

    @property
    def _lock(self) -> Path:
        return self.root / "run" / "lock"

    @property
    def _running(self) -> Path:
        return self.root / "run" / "up.json"

    def prepare(self) -> None:
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in (self.logs, self.claims, self.processes, self.certificates):
            folder.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Held for as long as this process lives, however it ends."""
        with self._lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AlreadyRunning(self._told()) from None
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            try:
                yield
            finally:
                self._running.unlink(missing_ok=True)

    def tell(self, running: Running) -> None:
        self._running.write_bytes(orjson.dumps(asdict(running)))

    def running(self) -> Running | None:
        """The `isvc up` that is ready here now, if there is one."""
        return self._told() if self.holder() is not None else None

    def holder(self) -> int | None:
        """The process that holds the lock, whether it is starting, ready or stopping."""
        try:
            with self._lock.open("r+") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(file.read() or 0)
        except (OSError, ValueError):
            return None
        return None

    def _told(self) -> Running | None:
        try:
            return Running(**orjson.loads(self._running.read_bytes()))
        except (OSError, orjson.JSONDecodeError, TypeError):
            return None
