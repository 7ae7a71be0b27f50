"""Answers that send a client elsewhere."""

from __future__ import annotations

from typing import Final

from aiohttp import web

from isvc.local.gateway.requests.target import Target
from isvc.local.gateway.routes.rules import Match, Redirect

_PORTS: Final = {"http": 80, "https": 443}


def redirection(redirect: Redirect, target: Target, match: Match) -> web.Response:
    path = redirect.path(target.path, match)
    query = f"?{target.query}" if target.query else ""
    location = f"{redirect.scheme or target.scheme}://{_authority(redirect, target)}{path}{query}"
    return web.Response(status=redirect.status, headers={"Location": location})


def _authority(redirect: Redirect, target: Target) -> str:
    """Host and port. Another scheme without a port means the usual one, which is left out."""
    scheme = redirect.scheme or target.scheme
    port = redirect.port or (_PORTS.get(scheme) if redirect.scheme else target.port)
    host = redirect.host or target.host
    return host if port in (None, _PORTS.get(scheme)) else f"{host}:{port}"
