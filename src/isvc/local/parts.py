"""The parts that share the process of `isvc up`, wired together. Importing this module imports nearly everything."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.local.autoscaling import horizontal
from isvc.local.causes import Causes
from isvc.local.choices import Choices
from isvc.local.control_plane import ControlPlane, logs_of, parts_of
from isvc.local.controllers import controllers, gateways, inference_pools
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.bootstrap import TERMINAL, Front, Settings
from isvc.local.gateway.gateway import Gateway
from isvc.local.gateway.tls import Certificates
from isvc.local.gateway.unready import why_unready
from isvc.local.gateway.watching import Watcher
from isvc.local.home import Home
from isvc.local.install.gateway import GATEWAY_NAME
from isvc.local.keda import scaled_objects
from isvc.local.keda.flow_control import FlowControl
from isvc.local.keda.interceptor import Interceptor
from isvc.local.keda.prometheus import PrometheusClient
from isvc.local.keda.scaled_objects import ScaledObjects
from isvc.local.knative.activator import Activator
from isvc.local.knative.controllers import controllers as knative_controllers
from isvc.local.node.containers.sandbox import Sandbox
from isvc.local.node.node import NODE_NAME, Node
from isvc.local.node.processes.process import Reaper
from isvc.local.node.programs.warm import WarmServers
from isvc.local.returning import Returning
from isvc.programs import localmodel_node
from isvc.programs.cluster_manifests import PROGRAMS
from isvc.programs.options import Options
from isvc.programs.program import Program, build
from isvc.serving.environment import SYSTEM_NAMESPACE, ModelNode
from isvc.serving.thirdparty import HTTP_ROUTES
from isvc.toolkit.address import Address
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.manager import Manager
from isvc.toolkit.recorder import Recorder
from isvc.wire.private_files import open_private


def connect(home: Home) -> Client:
    return Client.connect(replace(kubeconfig.load(home.kubeconfig), socket=home.api_socket))


def manager(program: Program, cache: Cache, config: ClusterConfig, webhook_port: int, cert_dir: Path) -> Manager:
    """Returns a program's manager on this machine alone: no lease, no probes, webhooks on the loopback address.

    All managers share one cache: each object is sent, decoded and kept once.
    """
    webhooks = Address("127.0.0.1", webhook_port)
    options = Options(metrics=None, health_probes=None, webhooks=webhooks, webhook_cert_dir=cert_dir)
    return build(program, config, options, cache)


def model_keeper(cache: Cache, config: ClusterConfig, home: Home) -> Manager:
    """Returns the program that keeps models on this machine's disk, where a cluster has a DaemonSet."""
    path = "/models"
    place = ModelNode(NODE_NAME, str(home.disk / path.strip("/")), path)
    return localmodel_node.build(config, Options(metrics=None, health_probes=None, node=place), cache)


async def warm_up(client: Client) -> None:
    """Has the API server do now what it would do at the first apply: read schemas, compile rules, meet the webhooks."""
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
        "filters": [{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}],
        "backendRefs": [{"name": "warm-up", "port": 80}],
        "timeouts": {"request": "60s"},
    }
    with contextlib.suppress(ApiError, ClusterError):
        await _try(client, INFERENCE_SERVICES, {"predictor": {"model": model}})
        await _try(client, HTTP_ROUTES, {"parentRefs": [{"name": GATEWAY_NAME}], "rules": [rule]})
        await client.request_bytes("GET", f"/openapi/v3/apis/{INFERENCE_SERVICES.api_version}")


async def _try(client: Client, resource: Resource, spec: Object) -> None:
    """Creates an object that is not stored."""
    named = {"name": "warm-up", "namespace": "default"}
    await client.create(resource, resource.manifest(named, spec=spec), dry_run=True)


async def wait_until_ready(*managers: Manager) -> None:
    while not all(manager.ready for manager in managers):  # noqa: ASYNC110 - a flag of another's, set once
        await asyncio.sleep(0.005)


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports of the gateway: for everybody, for pods as their proxy, and with TLS."""

    gateway: int
    pods: int
    tls: int | None = None


class Local:
    """Controllers of Kubernetes, node and gateway on one cache."""

    def __init__(
        self, client: Client, home: Home, reaper: Reaper, warm: WarmServers, ports: Ports, choices: Choices
    ) -> None:
        clock = SystemClock()
        self.cache = Cache(client)
        recorder = Recorder(client, "isvc", clock)
        self.causes = Causes(client, self.cache, clock)
        self.gateway = Gateway(
            self.cache,
            Settings(ports.gateway, ports.pods, ports.tls, _front(choices), sandbox=choices.sandbox),
            folder=home.gateway,
            log_file=home.logs / "gateway.log",
            reaper=reaper,
            why_unready=partial(why_unready, client, self.cache, self.causes.state_of),
            certificates=Certificates(home.tls, clock.now) if ports.tls else None,
        )
        Watcher(self.cache, self.gateway, ports.gateway)
        self.node = Node(
            client,
            self.cache,
            recorder,
            home.root,
            pki=home.pki,
            reaper=reaper,
            env=proxy_env(self.gateway.proxy_url),
            drain=self._drain,
            simulate=choices.simulate,
            sandbox=_sandbox(client, ports) if choices.sandbox else None,
            warm=warm,
            own_logs=logs_of(shown := parts_of(home, PROGRAMS)),
        )
        self._control_plane = ControlPlane(client, shown, PROGRAMS)
        context = Context(client, self.cache, recorder, clock)
        activator = Activator(self.cache, self.gateway, clock)
        self.returning = Returning(self.cache, activator)
        self._prometheus = PrometheusClient(self.gateway.proxy_url)
        interceptor, flow_control = Interceptor(self.cache, activator, clock), FlowControl(self.cache, activator)
        scaled = ScaledObjects(context, self._prometheus, interceptor, flow_control)
        self.manager = Manager(
            client,
            self.cache,
            controllers=[
                *controllers(context),
                *gateways.controllers(context, ports.gateway, self.gateway.publisher.wait_until_published),
                *inference_pools.controllers(context, ports.gateway),
                *knative_controllers(context, activator, f"{SYSTEM_NAMESPACE}/{GATEWAY_NAME}", ports.gateway),
                scaled_objects.controller(context, scaled),
                horizontal.controller(context, scaled.external_metric),
            ],
            services=[recorder, activator],
        )

    async def start(self) -> None:
        await self.gateway.start()
        await self.node.start()

    async def stop(self) -> None:
        await self._control_plane.stop()
        await self.node.stop()
        await self.gateway.close()
        await self._prometheus.close()

    def open(self) -> None:
        self.node.open()
        self._control_plane.start()

    async def _drain(self, ports: list[int], seconds: float) -> None:
        await asyncio.gather(*(self.gateway.drain(Endpoint("127.0.0.1", port), seconds) for port in ports))


def _front(choices: Choices) -> Front:
    log = choices.access_log
    if log and log != "-":
        open_private(Path(log), "a").close()  # Envoy would let everybody read it
        log = str(Path(log).absolute())
    as_json = choices.access_log_format == "json"
    return Front(choices.allow_origins, TERMINAL if log == "-" else log, as_json)


def _sandbox(client: Client, ports: Ports) -> Sandbox:
    return Sandbox((ports.gateway, ports.pods), urlsplit(client.config.server).port or 0)


def proxy_env(proxy: str) -> dict[str, str]:
    """Returns how processes reach Services by name: http:// requests go through the gateway, this machine's apart."""
    direct = "localhost,127.0.0.1,::1"
    return {"http_proxy": proxy, "HTTP_PROXY": proxy, "no_proxy": direct, "NO_PROXY": direct}
