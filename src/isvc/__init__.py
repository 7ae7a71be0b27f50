"""KServe's control plane in Python, for clusters and for laptops."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing's own is not imported: Ctrl-C shows a traceback until `isvc.__main__` runs
if TYPE_CHECKING:
    from typing import Any

    from isvc.insight.rendering import render as render
    from isvc.pods.modelserver import Model as Model
    from isvc.pods.modelserver import ModelServer as ModelServer

HOMES = {"render": "isvc.insight.rendering", "Model": "isvc.pods.modelserver", "ModelServer": "isvc.pods.modelserver"}
__all__ = ["Model", "ModelServer", "render"]


def __getattr__(name: str) -> Any:
    """Loads what is public when it is first asked for: nothing else that is imported pays for it."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(HOMES[name]), name)
