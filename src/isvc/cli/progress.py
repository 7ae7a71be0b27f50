"""A line on the terminal for what takes longer than a second; nothing at all where nobody looks."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.status import Status

PATIENCE = 1.0


class Progress:
    """Shows what is being done, once it has taken a while. Goes to stderr, so that output can be piped."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._status: Status | None = None
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._timer = threading.Timer(PATIENCE, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def update(self, text: str) -> None:
        with self._lock:
            self._text = text
            if self._status is not None:
                self._status.update(_escape(text))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None
            if self._status is not None:
                self._status.stop()

    def _show(self) -> None:
        from rich.console import Console

        console = Console(stderr=True)
        with self._lock:
            if self._timer is not None:
                self._status = console.status(_escape(self._text))
                self._status.start()


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
