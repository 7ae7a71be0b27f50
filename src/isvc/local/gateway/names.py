"""Names that clients ask for: this machine's own, Services of the cluster, and what can be the host of a route."""

from __future__ import annotations

import re
from typing import Final

THIS_MACHINE: Final = "localhost"
_ADDRESSES: Final = ("127.0.0.1", "[::1]")
_SEGMENTS: Final = 3
_LOOPBACK: Final = re.compile(r"(.+\.)?localhost|127(\.[0-9]{1,3}){3}|\[::1\]")
_HOST: Final = re.compile(r"(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?")


def host_and_port(authority: str) -> tuple[str, int]:
    """Returns the host in lower case and without a last dot, and its port, which is 80 if none is named."""
    host, colon, port = authority.rpartition(":")
    if not colon or not port.isdigit():
        host, port = authority, "80"
    return host.lower().rstrip("."), int(port)


def full_name(host: str) -> str:
    """Returns the one name by which a host is known here: of the cluster, `.svc` stands for `.svc.cluster.local`.

    Routes name hosts, not addresses: 127.0.0.1 is `localhost` to them.
    """
    if host in _ADDRESSES:
        return THIS_MACHINE
    return f"{host}.cluster.local" if host.endswith(".svc") else host


def place_of(host: str, path: str) -> str:
    """Returns what routes of a host are kept under: its name, of this machine's with the first segments of a path.

    All services may share that name, as in localhost/serving/namespace/name, and a change is to concern one of them. A
    path that does not go on after these segments has none.
    """
    *beginning, _ = path.split("/", _SEGMENTS + 1)
    is_part = host == THIS_MACHINE and len(beginning) > _SEGMENTS and ":" not in "".join(beginning)
    return f"{host}{'/'.join(beginning)}" if is_part else host


def is_this_machine(host: str) -> bool:
    """Returns whether the name can mean this machine alone, which a name out of the DNS never does."""
    return _LOOPBACK.fullmatch(host) is not None


def is_host(name: str) -> bool:
    """Returns whether a route may be for it: a name, or a domain as `*.example.com`."""
    return _HOST.fullmatch(name) is not None


def cluster_name(host: str) -> tuple[str, str] | None:
    """Returns service and namespace of `name.namespace` and its longer forms in the cluster; None for other hosts."""
    parts = host.removesuffix(".cluster.local").removesuffix(".svc").split(".")
    if len(parts) != 2 or parts[1] in ("localhost", "local") or parts[1].isdigit():
        return None
    return parts[0], parts[1]
