"""Answers that the gateway gives itself, and the end of those that broke off."""

from __future__ import annotations

from typing import Final

from aiohttp import web

BEGUN: Final = web.RequestKey("begun", web.StreamResponse)
"""The answer of which a client has seen the beginning."""


def refusal(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status, headers={"X-Isvc-Gateway": "refused"})


def broken_off(request: web.BaseRequest) -> web.StreamResponse | None:
    """A response that broke off half-way cannot be taken back: the connection ends, so that the client knows."""
    response: web.StreamResponse | None = request.get(BEGUN)
    if response is not None and request.transport is not None:
        request.transport.close()
    return response
