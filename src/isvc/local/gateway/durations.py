"""Durations of the Gateway API and of Istio, such as `1m30s` and `0.5s`."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def duration(text: str) -> float | None:
    """Seconds; None where there are none, or where zero switches a limit off."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text)) or None
