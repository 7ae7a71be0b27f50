"""How the API server answers over HTTP: in the media type that a client prefers, errors as Kubernetes' Status."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import orjson

from isvc.apiserver.http.media import encode_answer
from isvc.apiserver.http.response import Response, head
from isvc.apiserver.request import Request
from isvc.kube.errors import ApiError, BadRequest, InternalError, TooLarge
from isvc.wire.http1 import message
from isvc.wire.http1.connection import Connection, Handler

log = logging.getLogger(__name__)

Answer = Callable[[Request, Connection[Request]], "message.Response | Awaitable[message.Response]"]

Answered = Callable[[Request, int, bool], None]
"""Is called when an answer begins, with its status and whether it is a stream."""


class ApiHandler(Handler[Request]):
    max_body = 3 << 20
    request_type = Request

    def __init__(self, answer: Answer, answered: Answered) -> None:
        self._answer = answer
        self._answered = answered

    def handle(
        self, request: Request, connection: Connection[Request]
    ) -> message.Response | Awaitable[message.Response]:
        return encode_answer(self._answer(request, connection), request)

    def head(self, response: message.Response, request: Request | None, *, close: bool, chunked: bool = False) -> bytes:
        if request is not None:
            self._answered(request, response.status, chunked or isinstance(response, message.Upgrade))
        return head(response, request.warnings if request else [], close, chunked)

    def refusal(self, status: int, message: str) -> Response:
        return Response.error(TooLarge(message) if status == 413 else BadRequest(message, status=status))

    def failure(self, request: Request, error: Exception) -> message.Response:
        answer = encode_answer(self._failure(request, error), request)
        assert isinstance(answer, message.Response)
        return answer

    def _failure(self, request: Request, error: Exception) -> Response:
        """Answers with what the request raised, or 500 with the details in our log only."""
        if isinstance(error, ApiError):
            return Response.error(error)
        if isinstance(error, RecursionError | orjson.JSONEncodeError):
            return Response.error(BadRequest("the object is nested too deeply"))
        log.error("%s %s failed", request.method, request.path, exc_info=error)
        return Response.error(InternalError("Internal error occurred: see the API server's log"))
