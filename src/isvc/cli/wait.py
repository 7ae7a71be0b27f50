"""`isvc wait`: until a service is ready, or it is known that it can never be."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services
from isvc.cli.progress import Progress
from isvc.cli.seconds import Seconds

if TYPE_CHECKING:
    from isvc.toolkit.client import Client

LOOK_EVERY = 0.5  # seconds
SETTLED = 10.0  # seconds after which a cause that is still there is taken to stay
#: Never go by themselves.
FINAL = frozenset(
    {
        "Stopped",
        "NamespaceTerminating",
        "BeingDeleted",
        "InvalidSpec",
        "DeployedByModelMesh",
        "NameTaken",
        "KnativeNotInstalled",
        "DeniedByWebhook",
    }
)
#: May go at any time: a server still loads its model, a node is added, a load balancer gets its address.
PASSING = frozenset({"ProbeFails", "Unschedulable", "GatewayWithoutAddress", "NoMetrics", "KnativeNotReady"})
TIMED_OUT, NEVER = 1, 2


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=complete_services)
@click.option("--timeout", type=Seconds(), default="5m", show_default=True, help="How long to wait.")
@cluster_options()
def command(cluster: Cluster, names: tuple[str, ...], timeout: float) -> None:
    """Wait until services are ready.

    Gives up early, and says why, when a service cannot become ready unless somebody acts. Exits with 1 after the
    timeout, with 2 when it gives up.
    """
    with Progress(f"waiting for {', '.join(names)}") as progress:
        code = cluster.run(lambda client: _wait(client, cluster, names, time.monotonic() + timeout, progress))
    sys.exit(code)


async def _wait(client: Client, cluster: Cluster, names: tuple[str, ...], deadline: float, progress: Progress) -> int:
    codes = [await _wait_for(client, cluster.scope(client), name, deadline, progress) for name in names]
    return max(codes)


async def _wait_for(client: Client, namespace: str, name: str, deadline: float, progress: Progress) -> int:
    from isvc.cli.explain import describe, headline
    from isvc.insight.diagnosis.finding import Level
    from isvc.insight.operations import kinds
    from isvc.kube.objects import name_of
    from isvc.kube.readiness import is_ready
    from isvc.toolkit.failure import ClusterError

    resource, service = await kinds.find(client, name, namespace)
    blocked, since = "", time.monotonic()
    while True:
        try:
            service = await client.get(resource, name_of(service), namespace)
            if is_ready(service):
                click.echo(headline(service, []))
                return 0
            from isvc.insight.diagnosis.gather import examine  # half of what the command imports

            findings = await examine(client, service)
        except ClusterError as error:  # which was there a moment ago, and may be again
            if time.monotonic() >= deadline:
                raise
            progress.update(str(error))
            await asyncio.sleep(LOOK_EVERY)
            continue
        first = findings[0] if findings and findings[0].level is Level.BLOCKS else None
        now, cause = time.monotonic(), first.cause if first else ""
        blocked, since = cause, since if cause == blocked else now
        if cause in FINAL or (cause and cause not in PASSING and now - since >= SETTLED):
            click.echo("\n".join(describe(service, findings[:1])), err=True)
            return NEVER
        if now >= deadline:
            click.echo("\n".join(describe(service, findings[:1])), err=True)
            return TIMED_OUT
        progress.update(click.unstyle(headline(service, findings)))
        await asyncio.sleep(LOOK_EVERY)
