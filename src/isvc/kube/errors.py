"""What an API server answers when it says no, as one tree of exceptions.

ApiError
├── BadRequest            400
├── Unauthorized          401
├── Forbidden             403
├── NotFound              404
├── MethodNotAllowed      405
├── NotAcceptable         406
├── Conflict              409  a write met a newer version
│   └── AlreadyExists     409
├── Gone                  410  Expired: list again
├── TooLarge              413
├── UnsupportedMediaType  415
├── Invalid               422
├── TooManyRequests       429  retry_after seconds
├── InternalError         500
├── ServiceUnavailable    503
└── Timeout               504

The same classes serve both ends: a client raises what it received, the embedded server sends what it raised.
"""

from __future__ import annotations

from typing import Any, ClassVar

from isvc.kube.objects import Object


class ApiError(Exception):
    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(self, message: str, *, details: Object | None = None, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: Object = details or {}
        self._shows_details = details is not None
        self.status_code = status if status is not None else self.code
        self.is_status = True  # an API server said so, and not a program behind it

    @property
    def retry_after(self) -> float | None:
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None

    def status(self) -> Object:
        """Returns the `Status` object that carries this error over the wire."""
        body: Object = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.status_code,
        }
        if not self._shows_details:
            del body["details"]
        if not self.reason:
            del body["reason"]
        return body


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class Conflict(ApiError):
    code, reason = 409, "Conflict"


class AlreadyExists(Conflict):
    reason = "AlreadyExists"


class Gone(ApiError):
    code, reason = 410, "Expired"


class TooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


def _tree(root: type[ApiError]) -> list[type[ApiError]]:
    return [root, *(c for child in root.__subclasses__() for c in _tree(child))]


_BY_REASON = {cls.reason: cls for cls in _tree(ApiError)}
_BY_CODE = {cls.code: cls for cls in reversed(_tree(ApiError)[1:])}


def from_status(code: int, body: Any) -> ApiError:
    """Returns the exception for a response: by its `reason` where it has a known one, else by its code."""
    status: Object = body if isinstance(body, dict) else {"message": str(body)}
    kind = _BY_REASON.get(str(status.get("reason", ""))) or _BY_CODE.get(code, ApiError)
    if kind.code != code:
        kind = _BY_CODE.get(code, ApiError)
    details = status.get("details")
    is_status = status.get("kind") == "Status"
    other = status if status and not is_status else f"the server answered {code}"
    message = str(status.get("message") or other)
    error = kind(message, details=details if isinstance(details, dict) else None, status=code)
    error.is_status = is_status
    return error
