"""`isvc logs`: what all pods of a service say, in one stream."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import click

from isvc.cli.cluster import Cluster, cluster_options

if TYPE_CHECKING:
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "bright_cyan", "bright_magenta")
LOOK_EVERY = 1.0  # seconds between two looks for new containers


class Stream(NamedTuple):
    """One container of one pod, started for the so-manieth time."""

    pod: str
    container: str
    restarts: int
    component: str


@click.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on with what is logged from now on, also by new pods.")
@click.option("--tail", default=20, show_default=True, help="Lines of each container to begin with; -1 for all.")
@click.option("-c", "--container", default="", help="Only this container.")
@cluster_options()
def command(cluster: Cluster, name: str, follow: bool, tail: int, container: str) -> None:
    """Show the logs of all pods of a service, with the component that each line comes from."""
    cluster.run(lambda client: _logs(client, cluster, name, follow=follow, tail=tail, container=container))


async def _logs(client: Client, cluster: Cluster, name: str, *, follow: bool, tail: int, container: str) -> None:
    from isvc.cli import kinds

    namespace = cluster.scope(client)
    _, service = await kinds.find(client, name, namespace)
    shown: set[Stream] = set()
    printer = _Printer(client, namespace, follow=follow)
    async with asyncio.TaskGroup() as group:
        while True:
            streams = [each for each in await _streams(client, service) if container in ("", each.container)]
            for stream in streams:
                if stream not in shown:
                    group.create_task(printer.print(stream, tail if not stream.restarts or not shown else -1))
                    shown.add(stream)
            if not follow:
                break
            await asyncio.sleep(LOOK_EVERY)
    if not shown:
        raise click.ClickException(f"{name} has no containers that have started; `isvc explain {name}` says why")


async def _streams(client: Client, service: Object) -> list[Stream]:
    """The containers of a service that have started, init containers first."""
    from isvc.diagnosis.pods import pods_of
    from isvc.kube.objects import dig, name_of, namespace_of
    from isvc.kube.resource import PODS

    pods = pods_of(service, (await client.list(PODS, namespace_of(service))).items)
    return [
        Stream(name_of(pod), str(status["name"]), int(status.get("restartCount") or 0), _component(pod))
        for pod in reversed(pods)
        for field in ("initContainerStatuses", "containerStatuses")
        for status in dig(pod, "status", field) or ()
        if any(dig(status, when, how) for when in ("state", "lastState") for how in ("running", "terminated"))
    ]


def _component(pod: Object) -> str:
    from isvc.kube.objects import labels_of

    labels = labels_of(pod)
    named = labels.get("component") or labels.get("app.kubernetes.io/component") or labels.get("serving.kserve.io/kind")
    return named or "router"


class _Printer:
    """Prints log lines behind the component that they come from, each in a colour of its own."""

    def __init__(self, client: Client, namespace: str, *, follow: bool) -> None:
        self._client, self._namespace, self._follow = client, namespace, follow
        self._colours: dict[str, str] = {}

    async def print(self, stream: Stream, tail: int) -> None:
        from isvc.kube.errors import ApiError
        from isvc.kube.resource import PODS
        from isvc.toolkit.failure import ClusterError

        params = {"container": stream.container, **({"tailLines": str(tail)} if tail >= 0 else {})}
        if self._follow:
            params["follow"] = "true"
        label = f"{stream.component}/{stream.container}"
        colour = self._colours.setdefault(label, _COLOURS[len(self._colours) % len(_COLOURS)])
        prefix = click.style(f"{label} {stream.pod[-5:]}", fg=colour)
        try:
            async for line in self._client.lines(f"{PODS.path(self._namespace, stream.pod)}/log", params):
                click.echo(f"{prefix} {line.decode(errors='replace').rstrip()}")
        except (ApiError, ClusterError) as error:
            click.echo(f"{prefix} {click.style(f'no log: {error}', dim=True)}", err=True)
