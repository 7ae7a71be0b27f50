"""What servers in pods do as processes: log, take their port, end on a signal, and leave a last message."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from pathlib import Path

GRACE = 30.0  # seconds that running requests have to be answered in, once the process is to end


def set_up_logs() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")


def bind(host: str, port: int) -> socket.socket:
    """Binds and does not listen yet: a port in use is reported at once; nobody connects before the model is there."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        raise OSError(f"cannot listen on port {port}: {error.strerror}") from None
    return listener


def stop_on_signals() -> asyncio.Event:
    """Returns what is set on SIGTERM and SIGINT."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def write_termination_message(text: str) -> None:
    """Writes the message where Kubernetes looks for it, for the container's status."""
    path = Path(os.environ.get("TERMINATION_MESSAGE_PATH", "/dev/termination-log"))
    with contextlib.suppress(OSError):
        if path.exists():
            path.write_text(text)
