"""What a request line asks for: host, port, path and query, taken apart strictly.

Requests are smuggled past a proxy that reads them differently from the server behind it. So a host that is given twice,
or that is no host, is refused rather than guessed at.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

_AUTHORITY: Final = re.compile(r"([a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?", re.IGNORECASE)
_LINE: Final = re.compile(r"[!-~\x80-\U0010ffff]*")
_METHOD: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LOOPBACK: Final = re.compile(r"(.+\.)?localhost|127(\.[0-9]{1,3}){3}|\[::1\]")


class BadTarget(Exception):
    """A request that no two programs need read alike; the text goes to the client."""


class Target(NamedTuple):
    """`proxied` when the request line named its host, as a client of an HTTP proxy does."""

    host: str
    port: int
    path: str
    query: str
    proxied: bool
    scheme: str = "http"

    @property
    def path_and_query(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def is_this_machine(self) -> bool:
        """Whether the name can mean this machine alone, which a name out of the DNS never does."""
        return _LOOPBACK.fullmatch(self.host) is not None

    @property
    def route_host(self) -> str:
        """The host that routes are looked up by. Routes name hosts, not addresses: 127.0.0.1 is `localhost` to them."""
        return "localhost" if self.is_address and self.is_this_machine else self.host

    @property
    def is_address(self) -> bool:
        return self.host.startswith("[") or self.host.replace(".", "").isdigit()


def target_of(request: web.BaseRequest) -> Target:
    raw = request.raw_path if isinstance(request, web.Request) else request._message.path
    if not _LINE.fullmatch(raw) or not _METHOD.fullmatch(request.method):
        raise BadTarget("the request line has a character that HTTP does not allow")
    hosts = request.headers.getall(hdrs.HOST, [])
    if len(hosts) > 1 or (not hosts and request.version >= HttpVersion11):
        raise BadTarget(f"a request has one Host header, not {len(hosts)}")
    authority, proxied = hosts[0] if hosts else "", False
    if raw[:7].lower() == "http://":
        authority, slash, rest = raw[len("http://") :].partition("/")
        raw, proxied = slash + rest or "/", True
    scheme = "https" if request.secure else "http"
    host, port = _host_and_port(authority, 443 if request.secure and not proxied else 80)
    path, _, query = raw.partition("?")
    return Target(host, port, path, query, proxied, scheme)


def _host_and_port(authority: str, usual_port: int) -> tuple[str, int]:
    if not authority:  # HTTP/1.0
        return "", usual_port
    found = _AUTHORITY.fullmatch(authority)
    if not found or int(found[2] or usual_port) > 65535:
        raise BadTarget("the request's host is no host name")
    return found[1].lower().rstrip("."), int(found[2] or usual_port)


def cluster_name(host: str) -> tuple[str, str] | None:
    """Service and namespace in `name.namespace`, `.svc` and `.svc.cluster.local` names; None for all other hosts."""
    parts = host.removesuffix(".cluster.local").removesuffix(".svc").split(".")
    if len(parts) != 2 or parts[1] in ("localhost", "local") or parts[1].isdigit():
        return None
    return parts[0], parts[1]
