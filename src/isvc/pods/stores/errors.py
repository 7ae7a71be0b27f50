"""Why a model could not be brought, as one tree of exceptions; each has the status the program exits with.

StorageError
├── NotFound       3  there is nothing at the source
├── Denied         4  the store does not let us
├── Unreachable    5  no answer, or only broken ones, for as long as we tried
│   └── Interrupted   one try ended early: worth another
├── Damaged        6  what arrived is not what was sent, or an archive that must not be unpacked
├── NoSpace        7  the volume is too small
└── Unsupported    8  an unknown scheme, or a client library that is not installed
"""

from __future__ import annotations

from types import ModuleType
from typing import ClassVar


class StorageError(Exception):
    exit_status: ClassVar[int] = 1


class NotFound(StorageError):
    exit_status = 3


class Denied(StorageError):
    exit_status = 4


class Unreachable(StorageError):
    exit_status = 5


class Interrupted(Unreachable):
    pass


class Damaged(StorageError):
    exit_status = 6


class NoSpace(StorageError):
    exit_status = 7


class Unsupported(StorageError):
    exit_status = 8


def from_http_status(status: int, what: str, explanation: str = "") -> StorageError:
    """Returns the error for an HTTP answer; a server that is busy or broken is worth another try."""
    words = " ".join(explanation.split())
    message = f"{what}: the server answered {status}" + (f": {words}" if words else "")
    if status in (401, 403):
        return Denied(message)
    if status in (404, 410):
        return NotFound(message)
    if status in (408, 425, 429) or status >= 500:
        return Interrupted(message)
    return StorageError(message)


def need(module: str, extra: str) -> ModuleType:
    """Imports a client library, or says how to install it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Unsupported(f"{error.name or module} is not installed; install isvc[{extra}]") from error
