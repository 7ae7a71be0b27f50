"""Three ways to say what changes in an object: JSON patch, merge patch and strategic merge patch.

Each is pure: what goes in stays as it is, what comes out may share unchanged parts with it.
"""

from __future__ import annotations


class PatchError(ValueError):
    """The patch is malformed, or does not fit the document."""
