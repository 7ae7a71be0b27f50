"""The server as a process: started, announced through a kubeconfig, stopped by a signal."""

from __future__ import annotations

import asyncio
import base64
import logging
import signal
from pathlib import Path

import orjson

from isvc.apiserver.access.identity import Identity
from isvc.apiserver.server import Server
from isvc.apiserver.store.lock import InUse
from isvc.apiserver.store.log import Unusable
from isvc.kube.objects import Object
from isvc.wire import event_loop
from isvc.wire.allocator import prepare_memory, settle_memory
from isvc.wire.private_files import write_private

CANNOT_RUN = (InUse, Unusable, OSError)
"""What `run` raises when the folder or the address is of no use; the message says so in one sentence."""


def run(server: Server, kubeconfig: Path) -> None:
    """Serves until a signal ends it; the kubeconfig is written when it is ready."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    event_loop.run(_serve(server, kubeconfig))


async def _serve(server: Server, kubeconfig: Path) -> None:
    prepare_memory()
    await server.start()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stop.set)
    settle_memory(server.store.count)
    write_private(kubeconfig, orjson.dumps(_credentials(server.url, server.identity), option=orjson.OPT_INDENT_2))
    logging.getLogger(__name__).info("serving at %s", server.url)
    await stop.wait()
    await server.stop()


def _credentials(url: str, identity: Identity) -> Object:
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
