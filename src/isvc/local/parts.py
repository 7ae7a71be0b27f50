"""The parts that share the process of `isvc up`, wired together. Importing this module imports nearly everything."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import ApiError
from isvc.local.autoscaling import horizontal
from isvc.local.causes import Causes
from isvc.local.certificate import serving_certificate
from isvc.local.choices import Choices
from isvc.local.controllers import controllers, gateways, inference_pools
from isvc.local.gateway.access_log import AccessLog
from isvc.local.gateway.endpoints.backends import Endpoint
from isvc.local.gateway.guard import Guard
from isvc.local.gateway.server import Gateway
from isvc.local.gateway.tls import Certificates
from isvc.local.home import Home
from isvc.local.install import conversions, install, install_webhooks
from isvc.local.install.gateway import GATEWAY_NAME
from isvc.local.keda import scaled_objects
from isvc.local.keda.prometheus import PrometheusClient
from isvc.local.keda.scaled_objects import ScaledObjects
from isvc.local.knative.activator import Activator
from isvc.local.knative.controllers import controllers as knative_controllers
from isvc.local.node.containers.sandbox import Sandbox
from isvc.local.node.node import Node
from isvc.local.node.processes.process import Reaper
from isvc.programs import isvc_manager, llmisvc_manager
from isvc.programs.options import Options
from isvc.programs.program import Program, build
from isvc.serving.environment import SYSTEM_NAMESPACE
from isvc.toolkit.address import Address
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.manager import Manager
from isvc.toolkit.recorder import Recorder

__all__ = [
    "PROGRAMS",
    "Local",
    "certificate",
    "connect",
    "conversions",
    "install",
    "install_webhooks",
    "manager",
    "ready",
    "warm_up",
]


def connect(path: Path) -> Client:
    return Client.connect(kubeconfig.load(path))


def certificate(folder: Path) -> bytes:
    """Returns the authority to trust of the webhooks' certificate, which is made when there is none that lasts."""
    return serving_certificate(folder, SystemClock().now())


PROGRAMS: Final = (isvc_manager.PROGRAM, llmisvc_manager.PROGRAM)


def manager(program: Program, config: ClusterConfig, webhook_port: int, cert_dir: Path) -> Manager:
    """Returns a program's manager on this machine alone: no lease, no probes, webhooks on the loopback address."""
    webhooks = Address("127.0.0.1", webhook_port)
    options = Options(metrics=None, health_probes=None, webhooks=webhooks, webhook_cert_dir=cert_dir)
    return build(program, config, options)


async def warm_up(client: Client) -> None:
    """Has the API server do now what it would do at the first apply: read schemas, compile rules, meet the webhooks."""
    service = {
        "apiVersion": INFERENCE_SERVICES.api_version,
        "kind": INFERENCE_SERVICES.kind,
        "metadata": {"name": "warm-up", "namespace": "default"},
        "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}}},
    }
    with contextlib.suppress(ApiError, ClusterError):
        await client.create(INFERENCE_SERVICES, service, dry_run=True)
        await client.request_bytes("GET", f"/openapi/v3/apis/{INFERENCE_SERVICES.api_version}")


async def ready(*managers: Manager) -> None:
    while not all(manager.ready for manager in managers):  # noqa: ASYNC110 - a flag of another's, set once
        await asyncio.sleep(0.005)


class Local:
    """Controllers of Kubernetes, node and gateway on one cache."""

    def __init__(self, client: Client, home: Home, reaper: Reaper, gateway_port: int, choices: Choices) -> None:
        clock = SystemClock()
        self._cache = Cache(client)
        recorder = Recorder(client, "isvc", clock)
        guard = Guard(frozenset(choices.allow_origins), reaches_this_machine=not choices.sandbox)
        self.causes = Causes(client, clock)
        access_log = AccessLog(choices.access_log, as_json=choices.access_log_json) if choices.access_log else None
        self._gateway = Gateway(self._cache, guard, gateway_port, self.causes.state_of, access_log)
        self._tls = home.tls
        self._node = Node(
            client,
            self._cache,
            recorder,
            home.root,
            pki=home.pki,
            reaper=reaper,
            env=proxy_env(guard.proxy_url(gateway_port)),
            drain=self._drain,
            simulate=choices.simulate,
            sandbox=_sandbox(client, gateway_port) if choices.sandbox else None,
        )
        context = Context(client, self._cache, recorder, clock)
        activator = Activator(self._cache, self._gateway.backends, clock)
        self._gateway.backends.line_of = activator.line
        self._prometheus = PrometheusClient(guard.proxy_url(gateway_port))
        scaled = ScaledObjects(context, self._prometheus)
        self.manager = Manager(
            client,
            self._cache,
            controllers=[
                *controllers(context),
                *gateways.controllers(context, gateway_port),
                *inference_pools.controllers(context, gateway_port),
                *knative_controllers(context, activator, f"{SYSTEM_NAMESPACE}/{GATEWAY_NAME}", gateway_port),
                scaled_objects.controller(context, scaled),
                horizontal.controller(context, scaled.external_metric),
            ],
            services=[recorder],
        )

    async def start(self, tls_port: int | None) -> None:
        await self._gateway.start("127.0.0.1")
        if tls_port is not None:
            await self._gateway.listen("127.0.0.1", tls_port, Certificates(self._tls, SystemClock().now).context())
        await self._node.start()

    async def stop(self) -> None:
        await self._node.stop()
        await self._gateway.close()
        await self._prometheus.close()

    def open(self) -> None:
        self._node.open()

    async def _drain(self, ports: list[int], seconds: float) -> None:
        backends = self._gateway.backends
        await asyncio.gather(*(backends.drain(Endpoint("127.0.0.1", port), seconds) for port in ports))


def _sandbox(client: Client, gateway_port: int) -> Sandbox:
    return Sandbox(gateway_port, urlsplit(client.config.server).port or 0)


def proxy_env(proxy: str) -> dict[str, str]:
    """Returns how processes reach Services by name: http:// requests go through the gateway, this machine's apart."""
    direct = "localhost,127.0.0.1,::1"
    return {"http_proxy": proxy, "HTTP_PROXY": proxy, "no_proxy": direct, "NO_PROXY": direct}
