"""`isvc status`: does it run here, and what does it serve?"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from isvc.kube.objects import Object


@click.command()
def command() -> None:
    """Show whether `isvc up` runs here, where it listens, and its InferenceServices. Exit code 3 when it does not."""
    from isvc.local.home import Home

    running = Home.default().running()
    if running is None:
        click.echo("isvc is not running; start it with `isvc up`")
        sys.exit(3)
    click.echo(f"running since {running.started} (pid {running.pid})")
    click.echo(
        f"  API server  {running.api_server}\n  gateway     {running.gateway}\n  kubeconfig  {running.kubeconfig}"
    )
    services = asyncio.run(_services(running.kubeconfig))
    if not services:
        click.echo("  no InferenceServices yet")
    for service in services:
        click.echo("  " + _line(service))


async def _services(path: str) -> list[Object]:
    from pathlib import Path

    from isvc.api.resources import INFERENCE_SERVICES
    from isvc.toolkit import kubeconfig
    from isvc.toolkit.client import Client

    async with Client.connect(kubeconfig.load(Path(path))) as client:
        return (await client.list(INFERENCE_SERVICES)).items


def _line(service: Object) -> str:
    from isvc.kube.objects import Key
    from isvc.local.status_printer import headline

    return f"{Key.of(service)} {headline(service) or 'is not reconciled yet'}"
