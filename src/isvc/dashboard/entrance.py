"""Where a dashboard is reached. It listens before the rest of it is imported: who comes early waits a moment."""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
from dataclasses import dataclass, field
from typing import Final

from isvc.dashboard.guard import is_loopback
from isvc.kube.gourl import url_host

TOKEN_IN_LINK: Final = "token"  # noqa: S105 - the name of a parameter
_BACKLOG: Final = 128


@dataclass(frozen=True, slots=True)
class Entrance:
    host: str
    port: int
    tls: ssl.SSLContext | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)

    @property
    def is_for_this_machine(self) -> bool:
        return is_loopback(url_host(self.host))

    @property
    def base(self) -> str:
        host = "localhost" if self.is_for_this_machine else url_host(self.host)
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}"

    @property
    def link(self) -> str:
        """The address that lets in whoever has it."""
        return f"{self.base}/?{TOKEN_IN_LINK}={self.token}"

    def listen(self) -> list[socket.socket]:
        """Raises OSError where that is not possible."""
        sockets = [self._open(self.host)]
        if self.host == "127.0.0.1":
            with contextlib.suppress(OSError):  # `localhost` may mean either; not every machine has both
                sockets.append(self._open("::1"))
        return sockets

    def _open(self, host: str) -> socket.socket:
        found = socket.getaddrinfo(host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, address = found[0]
        return socket.create_server(address, family=family, backlog=_BACKLOG)
