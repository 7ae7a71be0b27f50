"""`isvc dashboard`: services of a cluster in a browser."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options

if TYPE_CHECKING:
    from isvc.dashboard.server import Dashboard
    from isvc.toolkit.client import Client

_PORT = click.IntRange(0, 65535)


@click.command()
@click.option("--port", type=_PORT, help="Port to listen on.  [default: 8090, or a free one]")
@click.option("--open", "open_browser", is_flag=True, help="Open it in the browser.")
@cluster_options()
def command(cluster: Cluster, port: int | None, open_browser: bool) -> None:
    """Show the services of a cluster in a browser, live, with what keeps one from being ready.

    It listens on this machine alone, and lets in whoever has the link that it prints. With -n only that namespace is
    shown. Ctrl-C ends it.
    """
    cluster.run(lambda client: _serve(client, cluster, port, open_browser=open_browser))


async def _serve(client: Client, cluster: Cluster, port: int | None, *, open_browser: bool) -> None:
    dashboard = await start(client, port, (cluster.namespace,) if cluster.namespace else ())
    click.echo(f"dashboard of {client.config.server}: {dashboard.link}")
    if open_browser:
        click.launch(dashboard.link)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    try:
        await ended.wait()
    finally:
        await dashboard.close()


async def start(client: Client, port: int | None, namespaces: tuple[str, ...] = ()) -> Dashboard:
    """A dashboard that listens. It reads nothing before somebody looks."""
    from isvc.dashboard.cluster_view import ClusterView
    from isvc.dashboard.server import PORT, Dashboard
    from isvc.dashboard.views_in_use import ViewsInUse
    from isvc.local.node.ports import Ports
    from isvc.local.stack import PortBusy, port_or_free

    try:
        chosen = port_or_free(port, PORT, Ports())
    except PortBusy as error:
        raise click.ClickException(str(error)) from None
    dashboard = Dashboard(ViewsInUse(lambda: ClusterView(client, namespaces)), "127.0.0.1", chosen)
    await dashboard.start()
    return dashboard
