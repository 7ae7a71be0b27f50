"""`isvc apiserver`: the embedded API server on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="Where to write a kubeconfig once the server is ready.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="Where to keep objects, certificates and tokens.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on.  [default: a free one]")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--ephemeral", is_flag=True, help="Keep objects in memory, and forget them at the end.")
@click.option("--durable", is_flag=True, help="Wait for the disk at every write, so that a power cut loses nothing.")
@click.option(
    "--controllers",
    is_flag=True,
    help="Also collect garbage by owner reference, finalize namespaces and give them a ServiceAccount; without it, as "
    "with a bare kube-apiserver, children of deleted owners stay and namespaces remain Terminating.",
)
def command(kubeconfig: Path, **flags: Any) -> None:
    """Run the embedded Kubernetes API server alone, in the foreground.

    It listens on loopback with TLS and accepts the token or client certificate in the kubeconfig, which is written
    (mode 0600) when the server is ready. Ctrl-C or SIGTERM stops it.
    """
    from isvc.apiserver.run import CANNOT_RUN, run
    from isvc.apiserver.server import Server

    try:
        run(Server(**flags), kubeconfig)
    except CANNOT_RUN as error:
        raise click.ClickException(str(error)) from None
