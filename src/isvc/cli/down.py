"""`isvc down`: stop what `isvc up` started."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

import click

_PATIENCE = 30.0


@click.command()
def command() -> None:
    """Stop what `isvc up` started here. What was applied is kept for the next start."""
    from isvc.local.home import Home
    from isvc.local.node.processes.process import is_alive

    home = Home.default()
    pid = home.holder()
    if not pid:
        click.echo("isvc is not running")
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + _PATIENCE
    while home.holder() == pid or is_alive(pid):
        if time.monotonic() > deadline:
            click.echo(f"isvc (pid {pid}) has not stopped within {_PATIENCE:.0f} s", err=True)
            sys.exit(1)
        time.sleep(0.05)
    click.echo("stopped")
