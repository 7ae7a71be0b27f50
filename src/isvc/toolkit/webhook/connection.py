"""An API server's connection to the webhooks: a review is one POST with one JSON answer."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import orjson

from isvc.kube.errors import ApiError, BadRequest, InternalError, TooLarge
from isvc.wire.http1 import connection
from isvc.wire.http1.message import Request, Response

BODY_LIMIT = 7 * 2**20  # controller-runtime's: two objects of 3 MB and some
IDLE_SECONDS = 120.0  # longer than Go's 90, so that it is the client who hangs up

log = logging.getLogger(__name__)

Handler: TypeAlias = Callable[[Request], Response | Awaitable[Response]]


class Connection(connection.Connection[Request]):
    max_body = BODY_LIMIT
    request_type = Request

    def __init__(self, handler: Handler, connections: set[connection.Connection[Request]]) -> None:
        super().__init__(connections)
        self._handler = handler

    def handle(self, request: Request) -> Response | Awaitable[Response]:
        return self._handler(request)

    def refusal(self, status: int, message: str) -> Response:
        return error_response(TooLarge(message) if status == 413 else BadRequest(message, status=status))

    def failure(self, request: Request, error: Exception) -> Response:
        log.error("webhook %s crashed", request.path, exc_info=error)
        return error_response(InternalError("the webhook crashed: see its log"))


def error_response(error: ApiError) -> Response:
    return Response(orjson.dumps(error.status()), error.status_code)
