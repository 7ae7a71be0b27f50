"""`isvc-storage-initializer SRC DEST [SRC DEST …]`: bring each model, or say clearly why not."""

from __future__ import annotations

import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

from isvc.pods.storage_initializer import schemes
from isvc.pods.storage_initializer.archive import unpack_single
from isvc.pods.storage_initializer.confidential import decrypt_folder
from isvc.pods.storage_initializer.fetching import FULL
from isvc.pods.storage_initializer.placement import stage
from isvc.pods.storage_initializer.redaction import RedactingFormatter, Redaction
from isvc.pods.stores.errors import NoSpace, StorageError
from isvc.pods.stores.settings import Settings

log = logging.getLogger("isvc.storage-initializer")

USAGE: Final = "usage: isvc-storage-initializer SRC DEST [SRC DEST ...]"
TERMINATION_LOG: Final = "/dev/termination-log"
LONGEST_MESSAGE: Final = 4096


def main() -> NoReturn:
    _log_without_secrets()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        status = run(sys.argv[1:], os.environ)
    except _Terminated as ended:
        status = ended.status
    logging.shutdown()
    os._exit(status)  # at once: threads may still wait for a server that does not answer


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Brings all models and returns the exit status. The last error is also where Kubernetes looks for it."""
    if not arguments or len(arguments) % 2 or arguments[0] in ("-h", "--help"):
        log.error(USAGE)
        return 0 if "--help" in arguments or "-h" in arguments else 2
    redact = Redaction.of(arguments, environment)
    try:
        settings = Settings.read(environment)
        sources = arguments[::2]
        for index, (source, destination) in enumerate(zip(sources, arguments[1::2], strict=True)):
            bring(source, Path(destination), settings, sources[index + 1 :])
    except StorageError as error:
        return _fail(redact(str(error)), error.exit_status, environment)
    except OSError as error:
        status = NoSpace.exit_status if error.errno in FULL else 1
        reason = f"{error.strerror}: {error.filename}" if error.filename else str(error)
        return _fail(redact(reason), status, environment)
    except Exception as error:
        log.exception("unexpected")
        return _fail(redact(f"{type(error).__name__}: {error}"), 1, environment)
    return 0


def bring(source: str, destination: Path, settings: Settings, others: Sequence[str] = ()) -> None:
    """Brings one model; `others` are those that follow."""
    log.info("bringing %s to %s", source, destination)
    started = time.monotonic()
    with stage(destination, source, others) as folder:
        schemes.fetch(source, folder, settings)
        decrypt_folder(folder, settings)
        if unpack_single(folder):
            decrypt_folder(folder, settings)
    log.info("%s is in %s after %.1f s", source, destination, time.monotonic() - started)


def _fail(message: str, status: int, environment: Mapping[str, str]) -> int:
    log.error(message)
    path = Path(environment.get("TERMINATION_MESSAGE_PATH") or TERMINATION_LOG)
    if path.exists() or "TERMINATION_MESSAGE_PATH" in environment:
        try:
            path.write_bytes(message.encode(errors="backslashreplace")[:LONGEST_MESSAGE])
        except OSError as error:
            log.warning("cannot write %s: %s", path, error)
    return status


def _log_without_secrets() -> None:
    """Progress is for standard output, what goes wrong for standard error."""
    form = RedactingFormatter("%(asctime)s %(levelname)s %(message)s", Redaction.of(sys.argv[1:], os.environ))
    progress, problems = logging.StreamHandler(sys.stdout), logging.StreamHandler(sys.stderr)
    progress.addFilter(lambda record: record.levelno < logging.WARNING)
    problems.setLevel(logging.WARNING)
    for handler in (progress, problems):
        handler.setFormatter(form)
    logging.basicConfig(level=logging.INFO, handlers=[progress, problems])
    logging.captureWarnings(True)


class _Terminated(BaseException):
    def __init__(self, status: int) -> None:
        self.status = status


def _terminate(number: int, frame: FrameType | None) -> None:
    """Leaves through the usual exits, so that what is unfinished is removed."""
    raise _Terminated(128 + number)
