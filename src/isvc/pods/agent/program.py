"""The program: a server in front of the model server, and an end that loses neither requests nor events."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
from aiohttp import web

from isvc.pods.agent import probe
from isvc.pods.agent.batcher import Batcher
from isvc.pods.agent.cloudevents import Origin
from isvc.pods.agent.exchange import Handler, model_server
from isvc.pods.agent.flags import parser
from isvc.pods.agent.logger import Logger, sink, trust
from isvc.pods.agent.puller import Puller

log = logging.getLogger("isvc.pods.agent")

_CA_FOLDER = Path("/etc/tls/logger")
_GRACE = 30.0


def main(argv: Sequence[str] | None = None) -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    options = parser().parse_args(argv)
    if options.log_url and not options.log_url.startswith(("http://", "https://")):
        log.error("--log-url %s: logs are sent to http:// and https:// sinks alone", options.log_url)
        return 1
    try:
        asyncio.run(_serve(options))
    except msgspec.DecodeError as error:
        log.error("SERVING_READINESS_PROBE: %s", error)
        return 1
    except OSError as error:
        log.error("cannot listen on port %d: %s", options.port, error.strerror or error)
        return 1
    return 0


async def _serve(options: argparse.Namespace) -> None:
    local_ports = json.loads(os.environ.get("ISVC_PORTS", "{}"))
    readiness = probe.parse(os.environ.get("SERVING_READINESS_PROBE", ""), local_ports)
    draining = asyncio.Event()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(model_server(options.component_port))
        handler: Handler = server.forward
        if options.enable_batcher:
            handler = Batcher(server, handler, options.max_batchsize, options.max_latency / 1000).handle
        if options.log_url:
            tls = trust(_CA_FOLDER / options.logger_ca_cert_file, options.logger_tls_skip_verify)
            events = await stack.enter_async_context(sink(options.log_url, _origin(options), options.workers, tls))
            handler = Logger(handler, events, options.log_mode, options.metadata_headers).handle
        if options.enable_puller:
            puller = asyncio.create_task(Puller(Path(options.config_dir), Path(options.model_dir), server).run())
            stack.callback(puller.cancel)

        async def answer(request: web.Request) -> web.StreamResponse:
            if probe.is_probe(request.headers):
                return await probe.answer(request, readiness, draining.is_set())
            return await handler(request)

        await _until_stopped(options, _application(answer), draining)


def _application(handler: Handler) -> web.Application:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", handler)
    return app


def _origin(options: argparse.Namespace) -> Origin:
    return Origin(
        options.source_uri or f"http://localhost:{options.port}/",
        options.inference_service,
        options.namespace,
        options.component,
        options.endpoint,
        options.metadata_annotations,
    )


async def _until_stopped(options: argparse.Namespace, app: web.Application, draining: asyncio.Event) -> None:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_GRACE, auto_decompress=False)
    await runner.setup()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, draining.set)
    try:
        await web.TCPSite(runner, options.host, options.port).start()
        log.info("serving on port %d, in front of port %d", options.port, options.component_port)
        await draining.wait()
        await asyncio.sleep(options.drain_seconds)
    finally:
        await runner.cleanup()
