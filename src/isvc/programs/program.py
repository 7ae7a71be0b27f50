"""Manager programs as values, and how a manager is made of one.

`build` turns a program, a cluster and the chosen options into a manager. Several managers can run in one
process, each with its own client; they have caches of their own, unless they are given one to share.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from isvc.programs.configuration import watch_configuration
from isvc.programs.options import Options
from isvc.programs.registration import Webhook, WebhookContext, reads, routes, targets
from isvc.programs.tls import protection, restrict, trust_clients, webhook_certificates
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller
from isvc.toolkit.election import Election
from isvc.toolkit.manager import Manager, on_signals
from isvc.toolkit.metrics import Metrics
from isvc.toolkit.recorder import Recorder
from isvc.toolkit.rotation import Targets
from isvc.toolkit.tasks import cancel
from isvc.toolkit.tracing import Tracer
from isvc.toolkit.webhook import ClientNames, WebhookServer

MakeController: TypeAlias = Callable[[Context, Environment], Controller]
Meter: TypeAlias = Callable[[Cache, Metrics], None]
Task: TypeAlias = Callable[[Context, Options], Awaitable[None]]


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """What one manager differs from another in."""

    name: str
    lease: str
    webhook_service: str
    certificate: str  # the Secret that holds it, unless the certificate is mounted
    event_source: str
    webhooks: tuple[Webhook, ...] = ()
    controllers: tuple[MakeController, ...] = ()
    meters: tuple[Meter, ...] = ()  # what it counts beside reconciles and requests
    tasks: tuple[Task, ...] = ()  # run once by the leader, beside its controllers; one that fails ends the manager
    defaults: Options = field(default_factory=Options)
    prepare: Callable[[], None] = lambda: None  # run in a thread at the start, so that the first service is served fast


def build(program: Program, config: ClusterConfig, options: Options, shared_cache: Cache | None = None) -> Manager:
    """Returns the manager with all its parts, ready to run. Nothing is sent before it runs."""
    client, clock = Client.connect(config), SystemClock()
    cache = shared_cache or Cache(client, namespaces=options.namespaces)
    metrics = Metrics()
    recorder = Recorder(client, program.event_source, clock, on_drop=metrics.event_dropped)
    context = Context(client, cache, recorder, clock)
    controllers = [make(context, options.environment) for make in program.controllers]
    watch_configuration(cache, metrics, options.system_namespace)
    for meter in program.meters:
        meter(cache, metrics)
    cache.declare("webhooks", *reads(program.webhooks, options.system_namespace))
    cert_dir, certificates = webhook_certificates(
        client,
        service=program.webhook_service,
        secret=program.certificate,
        namespace=options.system_namespace,
        targets=Targets() if options.namespaces else targets(program.webhooks, program.webhook_service),
        cert_dir=options.webhook_cert_dir,
    )
    served = routes(program.webhooks, WebhookContext.of(cache, client, options))
    clients = ClientNames(options.webhook_client_names) if options.webhook_client_ca else None
    webhooks = WebhookServer(options.webhooks.port, cert_dir, served, host=options.webhooks.host, clients=clients)
    restrict(webhooks.tls, options.tls)
    trust_clients(webhooks.tls, options.webhook_client_ca)
    return Manager(
        client,
        cache,
        controllers=controllers,
        tasks=[partial(task, context, options) for task in program.tasks],
        election=Election(client, program.lease, options.system_namespace) if options.leader_elect else None,
        webhooks=webhooks,
        services=[*certificates, recorder],
        health_probes=options.health_probes,
        metrics=metrics,
        tracer=Tracer(options.traces, program.name) if options.traces else None,
        metrics_address=options.metrics,
        metrics_protection=protection(client, options.tls) if options.metrics_secure else None,
        prepare=program.prepare,
        shutdown_delay=options.shutdown_delay,
    )


async def build_and_run(programs: Mapping[Program, Options]) -> None:
    """Runs managers in one process until they are to end; the first one has the others as companions."""
    first, *others = (build(each, kubeconfig.load(options.kubeconfig), options) for each, options in programs.items())
    first.companions = others
    await run(first, *others)


async def run(*managers: Manager) -> None:
    """Runs managers side by side until SIGTERM or SIGINT, or until one of them ends: all end with it, in good order."""

    def stop() -> None:
        for manager in managers:
            manager.stop()

    restore = on_signals(stop)
    tasks = [asyncio.create_task(_run(manager)) for manager in managers]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        stop()
        await asyncio.wait(tasks)
        for task in tasks:
            task.result()
    finally:
        restore()
        await cancel(*tasks)


async def _run(manager: Manager) -> None:
    async with manager.client:
        await manager.run(handle_signals=False)
