"""Who may use the gateway, and for what.

Anybody on this machine may ask for a service by its host. The forward proxy, which lends the machine's network to
whoever uses it, is for pods alone: they get a credential that is new at every start. A web page of another site may do
neither, unless its origin is allowed: browsers say where a request comes from, and no page can make them say otherwise.
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from isvc.local.gateway.requests.target import Target

_USER: Final = "pod"


class Guard:
    def __init__(self, allowed_origins: frozenset[str] = frozenset(), *, reaches_this_machine: bool = True) -> None:
        """`reaches_this_machine` false keeps the proxy from being a way around a sandbox, to ports on this machine."""
        self.reaches_this_machine = reaches_this_machine
        self._password = secrets.token_urlsafe(24)
        self._allowed_origins = allowed_origins
        login = base64.b64encode(f"{_USER}:{self._password}".encode())
        self._expected = b"basic " + login

    def proxy_url(self, port: int) -> str:
        """What pods are given as their HTTP proxy."""
        return f"http://{_USER}:{self._password}@127.0.0.1:{port}"

    def is_pod(self, headers: Mapping[str, str]) -> bool:
        scheme, _, login = headers.get("Proxy-Authorization", "").partition(" ")
        return hmac.compare_digest(f"{scheme.lower()} {login.strip()}".encode(), self._expected)

    def trusts_name(self, target: Target) -> bool:
        """Whether a rule for any host serves this name: nobody else can have pointed it at this machine.

        Unless the origin of a page with that name is allowed, that leaves the machine's own names and addresses.
        """
        is_allowed = any(urlsplit(origin).hostname == target.host for origin in self._allowed_origins)
        return target.is_this_machine or target.is_address or is_allowed

    def is_foreign(self, headers: Mapping[str, str], target: Target, has_route: Callable[[str], bool]) -> bool:
        """Whether a web page of another site made the request.

        A page whose name leads to this machine only since it was loaded (DNS rebinding) is of the same origin as its
        request; so that origin has to be a host of ours, too.
        """
        origin = headers.get("Origin")
        if origin is not None and origin in self._allowed_origins:
            return False
        if headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return True
        if origin is None:
            return False
        same = urlsplit(origin).netloc.lower() == headers.get("Host", "").lower()
        return not (same and (target.is_this_machine or has_route(target.host)))
