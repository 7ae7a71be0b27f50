"""The credential with which pods use their proxy: new at every start."""

from __future__ import annotations

import base64
import secrets
from typing import Final

_USER: Final = "pod"


class Login:
    def __init__(self) -> None:
        self._password = secrets.token_urlsafe(24)

    @property
    def header(self) -> str:
        """What is sent as Proxy-Authorization."""
        return "Basic " + base64.b64encode(f"{_USER}:{self._password}".encode()).decode()

    def proxy_url(self, port: int) -> str:
        """What pods are given as their HTTP proxy."""
        return f"http://{_USER}:{self._password}@127.0.0.1:{port}"
