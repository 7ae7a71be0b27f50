"""What goes wrong because of what was asked for."""

from __future__ import annotations


class NotPossible(Exception):
    """What was asked for cannot be done; the message says why, in one sentence that people read."""
