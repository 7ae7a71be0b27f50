"""The API server as a program of its own: FOLDER KUBECONFIG PORT SOCKET [--ephemeral] [--durable].

It starts with few imports. SOCKET may be empty.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path


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
    try:
        run(server, Path(kubeconfig))
    except CANNOT_RUN as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
