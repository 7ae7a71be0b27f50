"""`isvc logs`: what all pods of a service say, in one stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services

if TYPE_CHECKING:
    from isvc.insight.operations.logs import Stream
    from isvc.toolkit.client import Client

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_cyan", "bright_magenta")


@click.command()
@click.argument("name", shell_complete=complete_services)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is logged from now on, also by new pods.")
@click.option("--tail", default=20, show_default=True, help="Lines of each container to begin with; -1 for all.")
@click.option("-c", "--container", default="", help="Only this container.")
@cluster_options()
def command(cluster: Cluster, name: str, follow: bool, tail: int, container: str) -> None:
    """Show the logs of all pods of a service, with the component that each line comes from."""
    cluster.run(lambda client: _logs(client, cluster, name, follow=follow, tail=tail, container=container))


async def _logs(client: Client, cluster: Cluster, name: str, *, follow: bool, tail: int, container: str) -> None:
    from isvc.insight.operations import kinds
    from isvc.insight.operations.logs import LOOK_EVERY, streams

    namespace = cluster.scope(client)
    _, service = await kinds.find(client, name, namespace)
    shown: set[Stream] = set()
    printer = _Printer(client, namespace, follow=follow)
    async with asyncio.TaskGroup() as group:
        while True:
            for stream in await streams(client, service):
                if container not in ("", stream.container):
                    continue
                if stream not in shown:
                    group.create_task(printer.print(stream, tail if not stream.restarts or not shown else -1))
                    shown.add(stream)
            if not follow:
                break
            await asyncio.sleep(LOOK_EVERY)
    if not shown:
        raise click.ClickException(f"{name} has no containers that have started; `isvc explain {name}` says why")


class _Printer:
    """Prints log lines behind the component that they come from, each in a colour of its own."""

    def __init__(self, client: Client, namespace: str, *, follow: bool) -> None:
        self._client, self._namespace, self._follow = client, namespace, follow
        self._colours: dict[str, str] = {}

    async def print(self, stream: Stream, tail: int) -> None:
        from isvc.insight.operations.logs import lines
        from isvc.kube.errors import ApiError
        from isvc.toolkit.failure import ClusterError

        label = f"{stream.component}/{stream.container}"
        colour = self._colours.setdefault(label, _COLOURS[len(self._colours) % len(_COLOURS)])
        prefix = click.style(f"{label} {stream.pod[-5:]}", fg=colour)
        try:
            async for line in lines(self._client, self._namespace, stream, tail=tail, follow=self._follow):
                click.echo(f"{prefix} {line}")
        except (ApiError, ClusterError) as error:
            click.echo(f"{prefix} {click.style(f'no log: {error}', dim=True)}", err=True)
