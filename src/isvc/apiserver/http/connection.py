"""A client's connection to the API server."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from isvc.apiserver.http.media import encoded
from isvc.apiserver.http.response import Response, head
from isvc.apiserver.request import Request
from isvc.kube.errors import ApiError, BadRequest, InternalError, TooLarge
from isvc.wire.http1 import connection, message

log = logging.getLogger(__name__)

Handler = Callable[[Request, "Connection"], "message.Response | Awaitable[message.Response]"]

Answered = Callable[[Request, int, bool], None]
"""Is called when an answer begins, with its status and whether it is a stream."""


class Connection(connection.Connection[Request]):
    max_body = 3 << 20
    request_type = Request

    def __init__(self, handler: Handler, connections: set[connection.Connection[Request]], answered: Answered) -> None:
        super().__init__(connections)
        self._handler = handler
        self._answered = answered
        self.streaming: Request | None = None  # what is being answered at length

    def handle(self, request: Request) -> message.Response | Awaitable[message.Response]:
        return encoded(self._handler(request, self), request)

    def head(self, response: message.Response, request: Request | None, *, close: bool, chunked: bool = False) -> bytes:
        is_stream = chunked or isinstance(response, message.Upgrade)
        self.streaming = request if is_stream else None
        if request is not None:
            self._answered(request, response.status, is_stream)
        return head(response, request.warnings if request else [], close, chunked)

    def refusal(self, status: int, message: str) -> Response:
        return Response.error(TooLarge(message) if status == 413 else BadRequest(message, status=status))

    def failure(self, request: Request, error: Exception) -> message.Response:
        answer = encoded(self._failure(request, error), request)
        assert isinstance(answer, message.Response)
        return answer

    def _failure(self, request: Request, error: Exception) -> Response:
        """What the request raised, or 500 with the details in our log only."""
        if isinstance(error, ApiError):
            return Response.error(error)
        if isinstance(error, RecursionError | orjson.JSONEncodeError):
            return Response.error(BadRequest("the object is nested too deeply"))
        log.error("%s %s failed", request.method, request.path, exc_info=error)
        return Response.error(InternalError("Internal error occurred: see the API server's log"))

    def peer_certificate(self) -> dict[str, Any] | None:
        certificate: dict[str, Any] | None = self._transport.get_extra_info("peercert")
        return certificate
