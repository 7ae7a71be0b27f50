"""The error for what cannot work until its author changes something."""

from __future__ import annotations


class Refused(Exception):
    """What was asked for cannot be done; trying again would not help.

    The message names what is wrong, `remedy` what would mend it where that is no change of the service.
    """

    def __init__(self, message: str, *, reason: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.remedy = remedy


class MissingSecret(Refused):
    """A secret that was counted on is not there. The message says who named it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
