"""The server as a process: started, announced through a kubeconfig, stopped by a signal."""

from __future__ import annotations

import asyncio
import base64
import gc
import logging
import signal
from pathlib import Path
from typing import NamedTuple

import orjson

from isvc.apiserver.access.identity import Identity
from isvc.apiserver.server import Server
from isvc.apiserver.store.lock import InUse
from isvc.apiserver.store.log import Unusable
from isvc.kube.objects import Object
from isvc.wire.allocator import settle_memory
from isvc.wire.private_files import write_private

CANNOT_RUN = (InUse, Unusable, OSError)
"""What `run` raises when the folder or the address is of no use; the message says so in one sentence."""


class Options(NamedTuple):
    folder: Path
    kubeconfig: Path
    host: str = "127.0.0.1"
    port: int = 0
    ephemeral: bool = False
    controllers: bool = False
    durable: bool = False
    socket: Path | None = None


def run(options: Options) -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(options))
    else:
        uvloop.run(serve(options))


async def serve(options: Options) -> None:
    gc.disable()
    server = Server(
        options.folder,
        ephemeral=options.ephemeral,
        host=options.host,
        port=options.port,
        socket=options.socket,
        controllers=options.controllers,
        durable=options.durable,
    )
    await server.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    settle_memory()
    write_private(options.kubeconfig, orjson.dumps(kubeconfig(server.url, server.identity), option=orjson.OPT_INDENT_2))
    logging.getLogger(__name__).info("serving at %s", server.url)
    await stop.wait()
    await server.stop()


def kubeconfig(url: str, identity: Identity) -> Object:
    """Returns a kubeconfig with a token (JSON is YAML too)."""
    authority = base64.b64encode(identity.ca.read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "isvc", "cluster": {"server": url, "certificate-authority-data": authority}}],
        "users": [{"name": "isvc", "user": {"token": identity.admin_token}}],
        "contexts": [{"name": "isvc", "context": {"cluster": "isvc", "user": "isvc", "namespace": "default"}}],
        "current-context": "isvc",
    }
