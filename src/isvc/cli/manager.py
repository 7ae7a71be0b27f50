"""`isvc-manager`: KServe's controller manager. Flags, lease and webhooks are those of the manager it stands in for."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from isvc.toolkit.failure import ClusterError

if TYPE_CHECKING:
    from isvc.toolkit.cache import Cache
    from isvc.toolkit.client import Client
    from isvc.toolkit.clock import Clock
    from isvc.toolkit.controller import Controller
    from isvc.toolkit.manager import Manager, Service
    from isvc.toolkit.recorder import Recorder

LEASE: Final = "kserve-controller-manager-leader-lock"
CERTIFICATE_SECRET: Final = "kserve-webhook-server-cert"  # noqa: S105 - its name
WEBHOOK_SERVICE: Final = "kserve-webhook-server-service"
VALIDATED: Final = ("inferenceservice", "trainedmodel", "inferencegraph", "clusterservingruntime", "servingruntime")
TLS_VERSIONS: Final = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class Options:
    metrics_addr: str = ":8080"
    webhook_port: int = 9443
    leader_elect: bool = False
    health_probe_addr: str = ":8081"
    webhook_cert_dir: str = ""
    tls_min_version: str = ""
    tls_cipher_suites: str = ""
    log_level: str = "info"
    namespace: str = "kserve"
    host: str = ""  # all addresses


@dataclass(frozen=True, slots=True)
class Context:
    """What a controller is made of."""

    client: Client
    cache: Cache
    recorder: Recorder
    clock: Clock
    system_namespace: str


def _inference_service(context: Context) -> Controller:
    from isvc.controllers.inferenceservice.watches import controller

    return controller(context.client, context.cache, context.recorder, context.clock, context.system_namespace)


def _inference_graph(context: Context) -> Controller:
    from isvc.controllers.inferencegraph.watches import controller

    return controller(context.client, context.cache, context.recorder, context.clock, context.system_namespace)


def _trained_model(context: Context) -> Controller:
    from isvc.controllers.trainedmodel.watches import controller

    return controller(context.client, context.cache, context.clock)


CONTROLLERS: list[Callable[[Context], Controller]] = [_inference_service, _inference_graph, _trained_model]
"""Every controller of the manager; each declares what it watches when it is made."""


def build(options: Options) -> Manager:
    """The manager with all its parts, ready to run."""
    from isvc.toolkit import kubeconfig
    from isvc.toolkit.cache import Cache
    from isvc.toolkit.client import Client
    from isvc.toolkit.clock import SystemClock
    from isvc.toolkit.election import Election
    from isvc.toolkit.manager import Manager
    from isvc.toolkit.recorder import Recorder
    from isvc.toolkit.webhook import WebhookServer, mutating
    from isvc.webhooks import pods
    from isvc.webhooks.routes import READ, READ_IF_THERE, manager_routes

    client = Client.connect(kubeconfig.load())
    cache, clock = Cache(client), SystemClock()
    recorder = Recorder(client, "v1beta1Controllers", clock)
    context = Context(client, cache, recorder, clock, options.namespace)
    controllers = [make(context) for make in CONTROLLERS]
    for resource in READ:
        cache.watch(resource)
    for resource in READ_IF_THERE:
        cache.watch(resource, optional=True)
    cert_dir, certificates = _certificates(options, client)
    routes = {
        **manager_routes(cache, options.namespace),
        pods.PATH: mutating(pods.PodMutator(cache, client, options.namespace)),
    }
    webhooks = WebhookServer(options.webhook_port, cert_dir, routes, host=options.host)
    _restrict(webhooks.tls, options)
    return Manager(
        client,
        cache,
        controllers=controllers,
        election=Election(client, LEASE, options.namespace) if options.leader_elect else None,
        webhooks=webhooks,
        services=[*certificates, recorder],
        host=options.host,
        probe_port=_port(options.health_probe_addr),
        metrics_port=_port(options.metrics_addr),
    )


def _certificates(options: Options, client: Client) -> tuple[Path, list[Service]]:
    """The folder with the webhooks' certificate, and who keeps it: somebody else if it is given, or else we do."""
    from isvc.toolkit.rotation import Certificates, Targets

    temporary = Path(tempfile.gettempdir())
    mounted = temporary / "k8s-webhook-server" / "serving-certs"  # where KServe's manifests mount the Secret
    if options.webhook_cert_dir or (mounted / "tls.crt").exists():
        return Path(options.webhook_cert_dir or mounted), []
    folder = temporary / "isvc-webhook-certificates"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    service = f"{WEBHOOK_SERVICE}.{options.namespace}.svc"
    return folder, [
        Certificates(
            client,
            namespace=options.namespace,
            secret=CERTIFICATE_SECRET,
            hosts=(service, f"{service}.cluster.local", "localhost"),
            cert_dir=folder,
            targets=Targets(
                mutating=("inferenceservice.serving.kserve.io",),
                validating=tuple(f"{kind}.serving.kserve.io" for kind in VALIDATED),
            ),
        )
    ]


def _restrict(tls: ssl.SSLContext, options: Options) -> None:
    """The oldest TLS version and the ciphers to accept."""
    minimum = options.tls_min_version.strip() or "VersionTLS12"
    if minimum not in TLS_VERSIONS:
        raise ClusterError(f"--tls-min-version must be one of {', '.join(TLS_VERSIONS)}, got {minimum!r}")
    tls.minimum_version = TLS_VERSIONS[minimum]
    suites = [suite.strip() for suite in options.tls_cipher_suites.split(",") if suite.strip()]
    if suites and minimum == "VersionTLS13":
        raise ClusterError("--tls-cipher-suites cannot be chosen with VersionTLS13, which has its own")
    if suites:
        try:
            tls.set_ciphers(":".join(map(_openssl_name, suites)))
        except ssl.SSLError:
            raise ClusterError(f"--tls-cipher-suites: none of these is known: {options.tls_cipher_suites}") from None


def _openssl_name(suite: str) -> str:
    """`TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`, as Go calls it → `ECDHE-RSA-AES128-GCM-SHA256`."""
    name = suite.removeprefix("TLS_").replace("_WITH_", "_").replace("AES_128", "AES128").replace("AES_256", "AES256")
    return name.replace("CHACHA20_POLY1305_SHA256", "CHACHA20_POLY1305").replace("_", "-")


def _port(address: str) -> int | None:
    """The port of `:8080` or `127.0.0.1:8080`; None where `0` switches the endpoint off."""
    port = address.rpartition(":")[2]
    if not port.isdigit():
        raise ClusterError(f"{address!r} is no address: write :PORT, or 0 for none")
    return int(port) or None


async def run(options: Options) -> None:
    manager = build(options)
    async with manager.client:
        await manager.run()


def _go_flags(arguments: list[str]) -> list[str]:
    """Go takes one dash for two."""
    return [f"-{a}" if len(a) > 2 and a[0] == "-" and a[1].isalpha() else a for a in arguments]


_SWITCH: Final[dict[str, Any]] = {"is_flag": False, "flag_value": "true", "type": bool}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--metrics-addr", default=":8080", show_default=True, help="Where metrics are served; 0 for nowhere.")
@click.option("--webhook-port", default=9443, show_default=True, help="The port of the webhooks.")
@click.option("--leader-elect", default=False, help="Act only while holding the lease.", **_SWITCH)
@click.option("--health-probe-addr", default=":8081", show_default=True, help="Where /healthz and /readyz are served.")
@click.option("--webhook-cert-dir", default="", help="Folder with tls.crt and tls.key; self-signed when left out.")
@click.option("--tls-min-version", default="", help="VersionTLS12 (default) or VersionTLS13.")
@click.option("--tls-cipher-suites", default="", help="Cipher suites by their Go names, separated by commas.")
@click.option("--zap-log-level", default="info", help="debug, info or error.")
@click.option("--zap-devel", default=False, hidden=True, **_SWITCH)
@click.option("--zap-encoder", default="", hidden=True)
@click.option("--zap-stacktrace-level", default="", hidden=True)
@click.option("--zap-time-encoding", default="", hidden=True)
def command(zap_log_level: str, zap_devel: bool, **flags: object) -> None:
    """Run the InferenceService, InferenceGraph and TrainedModel controllers, and their webhooks.

    The cluster is found through KUBECONFIG, ~/.kube/config, or the service account of the pod. POD_NAMESPACE names
    the namespace of the configuration and of the lease (kserve).
    """
    from isvc.toolkit import logs

    level = "debug" if zap_devel else {"error": "error", "debug": "debug"}.get(zap_log_level, "info")
    logs.set_up(level)
    chosen = {name: value for name, value in flags.items() if not name.startswith("zap_")}
    options = Options(**chosen, log_level=level, namespace=os.environ.get("POD_NAMESPACE", "kserve"))  # type: ignore[arg-type]
    try:
        _loop_runner()(run(options))
    except ClusterError as error:
        click.echo(f"isvc-manager: {error}", err=True)
        sys.exit(1)


def _loop_runner() -> Callable[..., None]:
    try:
        import uvloop
    except ImportError:
        return asyncio.run
    return uvloop.run


def main() -> None:
    command(_go_flags(sys.argv[1:]), standalone_mode=True)
