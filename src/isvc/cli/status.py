"""`isvc status`: does it run here, and what does it serve?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster
from isvc.cli.progress import Progress

if TYPE_CHECKING:
    from isvc.insight.diagnosis.finding import Finding
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client


@click.command()
def command() -> None:
    """Show whether `isvc up` runs here, where it listens, and its services. Exits with 3 if it does not run."""
    from isvc.local.home import Home

    running = Home.default().find_running()
    if running is None:
        click.echo("isvc is not running; start it with `isvc up`")
        sys.exit(3)
    click.echo(f"running since {running.started} (pid {running.pid})")
    click.echo(f"  API server  {running.api_server}\n  gateway     {running.gateway}")
    if running.gateway_tls:
        click.echo(f"  with TLS    {running.gateway_tls}")
    if running.gateway_restarts:
        times = f"{running.gateway_restarts} time{'s' if running.gateway_restarts != 1 else ''}"
        click.echo(f"              Envoy died, and was started again {times}, last at {running.gateway_restarted}")
    click.echo(f"  kubeconfig  {running.kubeconfig}")
    if running.dashboard:
        click.echo(f"  dashboard   {running.dashboard}")
    with Progress("looking at the services"):
        lines = Cluster(running.kubeconfig, all_namespaces=True).run(_lines)
    for line in lines or ["no services yet"]:
        click.echo(f"  {line}")


async def _lines(client: Client) -> list[str]:
    """Describes every service and what keeps it from being ready, by the same diagnosis as `isvc explain`."""
    from isvc.cli.explain import examine_all
    from isvc.insight.operations import kinds

    examined = await examine_all(client, await kinds.list_all(client, ""))
    return [_line(service, findings) for service, findings in examined]


def _line(service: Object, findings: list[Finding]) -> str:
    from isvc.api.resources import INFERENCE_SERVICES
    from isvc.insight.diagnosis.sentence import state
    from isvc.kube.objects import Key

    kind = "" if service["kind"] == INFERENCE_SERVICES.kind else f"{service['kind']} "
    return f"{kind}{Key.of(service)} {state(service, findings)}"
