"""What errors say to people."""

from __future__ import annotations


def message_of(error: BaseException) -> str:
    """Returns what an error says, or its type's name where it says nothing, as a timeout does."""
    return str(error) or type(error).__name__
