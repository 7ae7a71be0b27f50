"""Logs: one JSON object a line for machines, aligned and coloured lines on a terminal. Secrets never reach them.

Lines of a reconcile carry controller, namespace, name and reconcileID, as those of controller-runtime do.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

import orjson

from isvc.kube.masking import mask_text
from isvc.toolkit.reconciling import CURRENT

_COLOURS = {"DEBUG": "\x1b[2m", "INFO": "\x1b[36m", "WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31m"}


_LONGEST = 16_384
"""Characters of a message, which may quote what people write: an object may have a megabyte."""


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "level": record.levelname.lower(),
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "logger": record.name,
            "msg": mask_text(record.getMessage())[:_LONGEST],
        }
        if (reconciling := CURRENT.get()) is not None:
            line |= reconciling.fields()
        if record.exc_info:
            line["stacktrace"] = mask_text(self.formatException(record.exc_info))
        return orjson.dumps(line, default=str).decode()


class TerminalFormatter(logging.Formatter):
    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        level = f"{record.levelname.lower():7}"
        if self._colour:
            level = f"{_COLOURS.get(record.levelname, '')}{level}\x1b[0m"
        text = f"{moment} {level} {record.name.removeprefix('isvc.')}: {record.getMessage()[:_LONGEST]}"
        return mask_text(f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text)


def set_up(level: str = "info", *, json: bool | None = None, stream: TextIO | None = None) -> None:
    """Logs to `stream` (stderr); as JSON unless that is a terminal or `json` says otherwise."""
    target = stream or sys.stderr
    as_json = not target.isatty() if json is None else json
    handler = logging.StreamHandler(target)
    handler.setFormatter(JsonFormatter() if as_json else TerminalFormatter(colour=target.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
    logging.getLogger("asyncio").setLevel(logging.WARNING)
