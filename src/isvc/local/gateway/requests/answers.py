"""Answers that the gateway gives itself, and the end of those that broke off."""

from __future__ import annotations

from typing import Final

from aiohttp import web

BEGUN: Final = web.RequestKey("begun", web.StreamResponse)
"""The answer of which a client has seen the beginning."""

SERVICE: Final = web.RequestKey("service", str)
"""The backend that was chosen for a request, as `namespace/name`."""


def refusal(status: int, reason: str) -> web.Response:
    return web.json_response({"error": reason}, status=status, headers={"X-Isvc-Gateway": "refused"})


def broken_off(request: web.BaseRequest) -> web.StreamResponse | None:
    """A response that broke off half-way cannot be taken back: the connection ends, so that the client knows."""
    response: web.StreamResponse | None = request.get(BEGUN)
    if response is not None and request.transport is not None:
        request.transport.close()
    return response


def bytes_sent(request: web.BaseRequest, response: web.StreamResponse | None) -> int:
    """Returns how much of the body is sent or will be."""
    if isinstance(response, web.Response) and not response.prepared:
        return len(response.body) if isinstance(response.body, bytes) else 0
    return int(request.writer.output_size)
