"""KServe's control plane in Python, for clusters and for laptops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isvc.rendering import render as render

__all__ = ["render"]


def __getattr__(name: str) -> Any:
    """`isvc.render` is loaded when it is first asked for: nothing else that is imported pays for it."""
    if name != "render":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from isvc.rendering import render

    return render
