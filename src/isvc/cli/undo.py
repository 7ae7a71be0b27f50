"""`isvc undo`: gives a service a spec that it had before."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.output import as_yaml

if TYPE_CHECKING:
    from isvc.cli.revisions import History
    from isvc.kube.objects import Object
    from isvc.toolkit.client import Client


@click.command()
@click.argument("name")
@cluster_options()
@click.option("--to-revision", type=int, help="A revision that `isvc history` lists.  [default: the last one]")
@click.option("--dry-run", is_flag=True, help="Show the change, and do not make it.")
def command(cluster: Cluster, name: str, to_revision: int | None, dry_run: bool) -> None:
    """Give a service the spec that it had before its last change.

    The spec that it has now is kept in turn, so a second undo undoes the first.
    """

    async def undo(client: Client) -> None:
        from isvc.cli.revisions import history_of

        history = await history_of(client, name, cluster.scope(client))
        revision = _chosen(history, to_revision)
        click.echo(_difference(history, revision), nl=False)
        if not dry_run:
            await _write(client, history, revision)
            kind, title = history.resource.kind, history.service["metadata"]["name"]
            click.echo(f"{kind} {title} is back at revision {revision['revision']}")

    cluster.run(undo)


def _chosen(history: History, wanted: int | None) -> Object:
    name = history.service["metadata"]["name"]
    now = history.service.get("spec") or {}
    others = [each for each in history.earlier if (each["data"].get("spec") or {}) != now]
    if wanted is not None:
        others = [each for each in history.earlier if each["revision"] == wanted]
        if not others:
            known = ", ".join(str(each["revision"]) for each in history.earlier) or "none"
            raise click.ClickException(f"{name} has no revision {wanted}; there are: {known}")
    if not others:
        raise click.ClickException(f"{name} has no earlier spec: it has not changed since its history is kept")
    return others[-1]


def _difference(history: History, revision: Object) -> str:
    before, after = history.service.get("spec") or {}, revision["data"].get("spec") or {}
    lines = difflib.unified_diff(
        as_yaml({"spec": before}).splitlines(keepends=True),
        as_yaml({"spec": after}).splitlines(keepends=True),
        "now",
        f"revision {revision['revision']}",
    )
    return "".join(lines)


async def _write(client: Client, history: History, revision: Object) -> None:
    """Refused if the service has changed since it was read."""
    from isvc.toolkit.client import PatchKind

    metadata = history.service["metadata"]
    patch = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
        {"op": "replace", "path": "/spec", "value": revision["data"].get("spec") or {}},
    ]
    await client.patch(history.resource, metadata["name"], patch, metadata.get("namespace", ""), kind=PatchKind.JSON)
