"""What a check found: how bad it is, in one sentence, and what would mend it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"  # something will not work, or not for everybody
    ERROR = "error"  # a manager would not work


class Finding(NamedTuple):
    level: Level
    check: str
    message: str
    remedy: str = ""


def ok(check: str, message: str) -> Finding:
    return Finding(Level.OK, check, message)


def warning(check: str, message: str, remedy: str) -> Finding:
    return Finding(Level.WARNING, check, message, remedy)


def error(check: str, message: str, remedy: str) -> Finding:
    return Finding(Level.ERROR, check, message, remedy)
