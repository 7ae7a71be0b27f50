"""Durations as Go writes them, such as `1m30s` and `0.5s`."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)
_TOO_LONG: Final = 2**63 / 1e9
_WHOLE: Final = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


def seconds(text: str) -> float | None:
    """Returns None for what is no duration, or for one that is too long for Go: 292 years."""
    if not _WHOLE.fullmatch(text):
        return None
    length = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    return length if length < _TOO_LONG else None


def limit(text: str) -> float | None:
    """Returns the seconds of a limit; None where there is none, or where zero switches it off."""
    return seconds(text) or None
