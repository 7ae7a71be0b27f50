"""The API server as a program of its own: FOLDER KUBECONFIG PORT SOCKET [--ephemeral] [--durable].

It starts with few imports. SOCKET may be empty.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isvc.apiserver.server import Server


def main(folder: str, kubeconfig: str, port: str, socket: str, *flags: str) -> None:
    gc.disable()  # while it is imported; the server turns it on
    sys.dont_write_bytecode = False  # as in `isvc up`
    from isvc.apiserver.run import CANNOT_RUN, run
    from isvc.apiserver.server import Server

    server = Server(
        Path(folder),
        port=int(port),
        socket=Path(socket) if socket else None,
        ephemeral="--ephemeral" in flags,
        durable="--durable" in flags,
        controllers=True,
    )
    if not (server.folder / "pki").exists():
        _make_certificates(server)
    try:
        run(server, Path(kubeconfig))
    except CANNOT_RUN as error:
        sys.exit(str(error))


def _make_certificates(server: Server) -> None:
    """Makes the first ones in a process that ends: what they are made with takes 6 MB. Errors come up again later."""
    if child := os.fork():
        os.waitpid(child, 0)
        return
    try:
        server.load_identity()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
