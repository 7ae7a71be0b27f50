"""What can go wrong, and how it is answered: OpenAI's error body with vLLM's type names.

ServerError               the program cannot start or go on; one sentence for the log and the pod's status
ApiError                  one request cannot be answered
  BadRequest         400  the client must change something
  Unauthorized       401
  NotFound           404
  TooLarge           413
  EngineFailed       500  llama.cpp died while it answered
  Unavailable        503  no model is loaded at the moment
"""

from __future__ import annotations

from typing import Any


class ServerError(Exception):
    """Says in one sentence why the server cannot run."""


class ApiError(Exception):
    status = 500
    kind = "InternalServerError"

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param

    def body(self) -> dict[str, Any]:
        return error_body(self.status, self.kind, self.message, self.param)


class BadRequest(ApiError):
    status = 400
    kind = "BadRequestError"


class Unauthorized(ApiError):
    status = 401
    kind = "AuthenticationError"


class NotFound(ApiError):
    status = 404
    kind = "NotFoundError"


class TooLarge(ApiError):
    status = 413
    kind = "RequestEntityTooLargeError"


class EngineFailed(ApiError):
    pass


class Unavailable(ApiError):
    status = 503
    kind = "ServiceUnavailableError"


def error_body(status: int, kind: str, message: str, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": param, "code": status}}
