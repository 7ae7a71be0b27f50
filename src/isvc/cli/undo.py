"""`isvc undo`: gives a service a spec that it had before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services

if TYPE_CHECKING:
    from isvc.insight.operations.history import History
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client


@click.command()
@click.argument("name", shell_complete=complete_services)
@cluster_options()
@click.option("--to-revision", type=int, help="A revision that `isvc history` lists.  [default: the last one]")
@click.option("--dry-run", is_flag=True, help="Show the change, and do not make it.")
def command(cluster: Cluster, name: str, to_revision: int | None, dry_run: bool) -> None:
    """Give a service the spec that it had before its last change.

    The spec that it has now is kept in turn, so a second undo undoes the first.
    """

    async def undo(client: Client) -> None:
        from isvc.insight.operations import history as operations

        history = await operations.find_history(client, name, cluster.scope(client))
        revision = history.revision(to_revision)
        click.echo(_difference(history, revision), nl=False)
        if not dry_run:
            await operations.undo(client, history, revision)
            kind, title = history.resource.kind, history.service["metadata"]["name"]
            click.echo(f"{kind} {title} is back at revision {revision['revision']}")

    cluster.run(undo)


def _difference(history: History, revision: Object) -> str:
    from isvc.insight.operations.history import difference

    before, after = history.service.get("spec") or {}, revision["data"].get("spec") or {}
    return difference({"spec": before}, {"spec": after}, "now", f"revision {revision['revision']}")
