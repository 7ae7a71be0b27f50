"""What a pod's processes may reach when `isvc up --sandbox` runs them: their own folders and ports, and the programs.

Files: the system and Python can be read, the pod's volumes and a home of its own be written; the user's home cannot
even be read. Ports: the pod's own to listen on; the gateway, the pod's own and 443 to connect to, and the API server's
where a service account's token is mounted. Unix sockets: none.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from isvc.local.node.sandbox import landlock, seccomp
from isvc.local.node.sandbox.landlock import DEVICE, READ, WRITE, Network, Ruleset

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys")
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ACCELERATORS: Final = ("/dev/nvidia*", "/dev/dri/*", "/dev/kfd")
HTTPS: Final = 443


@dataclass(frozen=True, slots=True)
class Policy:
    """What one container's process may reach. `connects` None does not restrict where it connects to."""

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    listens: tuple[int, ...] = ()
    connects: tuple[int, ...] | None = ()


def why_not() -> str:
    """Returns what keeps pods from being confined on this machine; empty if nothing does."""
    if sys.platform != "linux":
        return f"it needs Linux, this is {sys.platform}"
    if landlock.abi() < landlock.FILES_ABI:
        return "the kernel does not offer Landlock (Linux 5.13 or later, with `landlock` among its security modules)"
    if not seccomp.is_available():
        return f"Unix sockets cannot be taken from processes on {os.uname().machine}"
    return ""


def shortcomings() -> list[str]:
    """Returns what this kernel cannot take from pods, though it confines them otherwise."""
    missing = []
    if landlock.abi() < landlock.PORTS_ABI:
        missing.append("pods can use any port: that needs Linux 6.7 or later")
    if landlock.abi() < landlock.SIGNALS_ABI:
        missing.append("pods can send signals to your other processes: that needs Linux 6.12 or later")
    return missing


@contextmanager
def confinement(policy: Policy | None) -> Iterator[Callable[[], None] | None]:
    """Yields what a child has to run before its program; None when it is not confined."""
    if policy is None:
        yield None
        return
    rules, calls = _ruleset(policy), seccomp.Filter()

    def confine() -> None:
        rules.put_into_force()
        calls.put_into_force()

    try:
        yield confine
    finally:
        rules.close()


def programs(*commands: str) -> tuple[Path, ...]:
    """Returns what has to be readable for Python, this package and these commands to run."""
    first = [] if sys.path[0] in ("", os.getcwd()) else sys.path[:1]  # `python -m` looks in the current folder first
    python = [sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), *first, *sys.path[1:]]
    package = Path(__file__).parents[4]
    found = [Path(place) for place in dict.fromkeys(python) if place]
    for command in commands:
        path = shutil.which(command) or command
        if os.path.isabs(path):
            found.append(Path(path))
    return _real([*found, package, *(path.resolve().parent for path in found if path.is_file())])


def _ruleset(policy: Policy) -> Ruleset:
    rules = Ruleset(connects=policy.connects is not None)
    try:
        for path in _real(Path(place) for place in (*SYSTEM, "/etc/resolv.conf", "/etc/localtime")):
            rules.allow_path(path, READ)
        for device in (*DEVICES, *(found for pattern in ACCELERATORS for found in glob.glob(pattern))):
            rules.allow_path(Path(device), DEVICE)
        for path in policy.readable:
            rules.allow_path(path, READ)
        for path in policy.writable:
            rules.allow_path(path, WRITE)
        for port in policy.listens:
            rules.allow_port(port, Network.BIND_TCP | Network.CONNECT_TCP)
        for port in policy.connects or ():
            rules.allow_port(port, Network.CONNECT_TCP)
    except BaseException:
        rules.close()
        raise
    return rules


def _real(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Returns where paths lead to; the user's home as a whole is never among them."""
    home = Path.home().resolve()
    resolved = dict.fromkeys(path.resolve() for path in paths)
    return tuple(path for path in resolved if path.exists() and not home.is_relative_to(path))
