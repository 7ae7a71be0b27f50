"""Addresses to listen on, written as Go programs take them: `:8080`, `127.0.0.1:8080`, `[::1]:8080`."""

from __future__ import annotations

from typing import NamedTuple, Self

from isvc.kube.gourl import url_host
from isvc.toolkit.failure import ConfigError


class Address(NamedTuple):
    host: str  # empty: all addresses of this machine
    port: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Returns None for `0` and `:0`, which switch an endpoint off."""
        host, _, port = text.rpartition(":")
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        elif ":" in host:
            raise ConfigError(f"{text!r} is no address: write an IPv6 address in brackets, as in [::1]:8080")
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise ConfigError(f"{text!r} is no address: write :PORT or HOST:PORT, or 0 for none")
        return cls(host, int(port)) if int(port) else None

    def __str__(self) -> str:
        return f"{url_host(self.host)}:{self.port}"
