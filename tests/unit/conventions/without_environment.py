"""Imports every module of isvc while the environment refuses to be read by any of them.

Other packages may read it when they are imported. Run as a program; prints what was imported.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator
from types import FrameType

import isvc


def reader(frame: FrameType | None) -> str | None:
    """Our module that reads, or None if the read is part of importing somebody else's."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("importlib") or name == "gettext":  # click asks for the language of its own texts
            return None
        if name == "isvc" or name.startswith("isvc."):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


class Refusing(dict[str, str]):
    def _check(self, what: object) -> None:
        if by := reader(sys._getframe(2)):
            raise AssertionError(f"{by} reads {what} of the environment when it is imported")

    def __getitem__(self, name: str) -> str:
        self._check(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._check(name)
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        self._check("all")
        return super().__iter__()

    def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self._check(name)
        return super().get(name, default)


if __name__ == "__main__":
    vars(os)["environ"] = Refusing(os.environ)
    for module in pkgutil.walk_packages(isvc.__path__, "isvc."):
        print(importlib.import_module(module.name).__name__)
