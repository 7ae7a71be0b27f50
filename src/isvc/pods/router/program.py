"""The program: KServe's flag and variable, and an end that loses no request.

On SIGTERM `/readyz` answers 503 and requests are served on for a while, until every load balancer has noticed; then
running requests are answered and the process ends.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
from collections.abc import Sequence

import msgspec

from isvc.pods import process
from isvc.pods.router.graph import Graph, decode

log = logging.getLogger("isvc.pods.router")


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(prog="isvc-router", description=__doc__, allow_abbrev=False)
    flags.add_argument("--graph-json", required=True, help="the InferenceGraph's spec as JSON")
    flags.add_argument("--host", default="0.0.0.0", help="address to listen on")  # noqa: S104
    flags.add_argument("--port", type=int, default=8080, help="port to listen on")
    flags.add_argument("--drain-seconds", type=float, default=30, help="how long to serve on after SIGTERM")
    return flags


def main(argv: Sequence[str] | None = None) -> int:
    process.set_up_logs()
    options = parser().parse_args(argv)
    try:
        graph = decode(options.graph_json)
    except msgspec.DecodeError as error:
        log.error("--graph-json: %s", error)
        return 1
    try:
        asyncio.run(_serve(graph, options))
    except OSError as error:
        log.error("cannot listen on port %d: %s", options.port, error.strerror)
        return 1
    return 0


async def _serve(graph: Graph, options: argparse.Namespace) -> None:
    from aiohttp import web

    from isvc.pods.router.app import Router, compile_patterns

    patterns = os.environ.get("PROPAGATE_HEADERS")
    router = Router(graph, compile_patterns(patterns) if patterns is not None else ())
    runner = web.AppRunner(
        router.application(),
        keepalive_timeout=graph.router_timeouts.server_idle,
        access_log=None,
        auto_decompress=False,
        shutdown_timeout=process.GRACE,
        handler_cancellation=True,
    )
    await runner.setup()
    stop = process.stop_on_signals()
    try:
        await web.TCPSite(runner, options.host, options.port).start()
        log.info("serving a graph of %d nodes on port %d", len(graph.nodes), options.port)
        await stop.wait()
        router.draining = True
        await asyncio.sleep(options.drain_seconds)
    finally:
        await runner.cleanup()
