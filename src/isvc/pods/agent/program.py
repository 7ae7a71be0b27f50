"""The program: a server in front of the model server, and an end that loses neither requests nor events."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from isvc.pods import process
from isvc.pods.agent.batcher import Batcher
from isvc.pods.agent.cloudevents import Origin
from isvc.pods.agent.flags import parser
from isvc.pods.agent.logger import Ledger, Logger, Sink
from isvc.pods.agent.model_server import ModelServer
from isvc.pods.agent.peer import Peer
from isvc.pods.agent.probe import Readiness
from isvc.pods.agent.puller import Puller
from isvc.pods.agent.relay import Relay, Settings
from isvc.wire import event_loop

log = logging.getLogger("isvc.pods.agent")

_CA_FOLDER = Path("/etc/tls/logger")
_BACKLOG = 1024


def main(argv: Sequence[str] | None = None) -> int:
    process.set_up_logs()
    options = parser().parse_args(argv)
    try:
        event_loop.run(_serve(options))
    except msgspec.DecodeError as error:
        log.error("SERVING_READINESS_PROBE: %s", error)
    except ValueError as error:
        log.error("--log-url: %s", error)
    except OSError as error:
        log.error("cannot listen on port %d: %s", options.port, error.strerror or error)
    else:
        return 0
    return 1


async def _serve(options: argparse.Namespace) -> None:
    readiness = Readiness(os.environ.get("SERVING_READINESS_PROBE", ""), json.loads(os.environ.get("ISVC_PORTS", "{}")))
    ledger, server = Ledger(), ModelServer(options.component_port)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close)
        logger = batcher = None
        if options.log_url:
            sink = await _sink(options, ledger, stack)
            logger = Logger(sink, ledger, options.log_mode, options.metadata_headers)
            if options.metrics_port:
                from isvc.pods.agent.metrics import serve_metrics

                await serve_metrics(ledger, options.host, options.metrics_port)
        if options.enable_batcher:
            batcher = Batcher(server, options.max_batchsize, options.max_latency / 1000)
        if options.enable_puller:
            puller = asyncio.create_task(Puller(Path(options.config_dir), Path(options.model_dir), server).run())
            stack.callback(puller.cancel)
        await _until_stopped(options, Settings(options.component_port, readiness, batcher, logger))


async def _sink(options: argparse.Namespace, ledger: Ledger, stack: AsyncExitStack) -> Sink:
    """Raises ValueError for an address that is none."""
    origin = _origin(options)
    if urlsplit(options.log_url).scheme in ("http", "https"):
        from isvc.pods.agent.http_sink import http_sink, trust

        tls = trust(_CA_FOLDER / options.logger_ca_cert_file, options.logger_tls_skip_verify)
        return await stack.enter_async_context(http_sink(options.log_url, origin, ledger, options.workers, tls))
    from isvc.pods.agent import store_sink
    from isvc.pods.agent.log_store import check, open_store
    from isvc.pods.agent.records import Sender

    check(options.log_url)
    sender = Sender(options.log_url, origin, options.logger_ca_cert_file, options.logger_tls_skip_verify)
    own = f"http://localhost:{options.log_marshaller_port}/marshal"  # what KServe's configuration may name
    if options.log_marshaller_url in ("", own):
        marshal = store_sink.format_marshal(options.log_store_format, sender)
    else:
        marshal = store_sink.external_marshal(options.log_marshaller_url, sender)
    sink = store_sink.StoreSink(
        lambda: open_store(options.log_url, os.environ),
        store_sink.folder_of(origin, options.log_store_path),
        store_sink.Batching(options.log_batch_size, options.log_batch_interval),
        marshal,
        ledger,
    )
    return await stack.enter_async_context(store_sink.run_writers(sink))


def _origin(options: argparse.Namespace) -> Origin:
    return Origin(
        options.source_uri or f"http://localhost:{options.port}/",
        options.inference_service,
        options.namespace,
        options.component,
        options.endpoint,
        options.metadata_annotations,
    )


async def _until_stopped(options: argparse.Namespace, settings: Settings) -> None:
    """Serves until SIGTERM, and then for as long as load balancers may not have noticed yet."""
    loop = asyncio.get_running_loop()
    stop = process.stop_on_signals()
    relays: dict[asyncio.Task[None], Relay] = {}

    def begin(client: Peer) -> None:
        relay = Relay(settings, client)
        task = loop.create_task(relay.serve())
        relays[task] = relay
        task.add_done_callback(relays.pop)

    server = await loop.create_server(lambda: Peer(begin), options.host, options.port, backlog=_BACKLOG)
    log.info("serving on port %d, in front of port %d", options.port, options.component_port)
    await stop.wait()
    settings.readiness.draining = True
    await asyncio.sleep(options.drain_seconds)
    server.close()
    for relay in list(relays.values()):
        relay.leave()
    if relays:
        await asyncio.wait(list(relays), timeout=process.GRACE)
