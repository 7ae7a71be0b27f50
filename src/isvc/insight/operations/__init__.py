"""What people do with a service, for commands and dashboard alike: find it, ask it, read its logs and history."""


class NotPossible(Exception):
    """What was asked for cannot be done; the message says why, in one sentence that people read."""
