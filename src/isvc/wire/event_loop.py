"""The event loop of a program: `run` is uvloop's, where there is one, else asyncio's."""

from __future__ import annotations

try:
    from uvloop import run
except ImportError:
    from asyncio import run  # type: ignore[assignment]

__all__ = ["run"]
