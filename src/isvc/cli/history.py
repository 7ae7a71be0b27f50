"""`isvc history`: the specs that a service had before, and what each change was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from isvc.cli.cluster import Cluster, cluster_options
from isvc.cli.complete import complete_services
from isvc.cli.output import JSON, YAML, output_option, print_objects, print_table

if TYPE_CHECKING:
    from isvc.insight.operations.history import History
    from isvc.toolkit.client import Client


@click.command()
@click.argument("name", shell_complete=complete_services)
@cluster_options()
@output_option(JSON, YAML)
def command(cluster: Cluster, name: str, output: str | None) -> None:
    """List the specs that a service had before, oldest first, and what changed then.

    Managers keep ten, in ControllerRevisions; their flag --revision-history-limit says how many, and 0 none.
    """

    async def read(client: Client) -> History:
        from isvc.insight.operations.history import find_history

        return await find_history(client, name, cluster.scope(client))

    from isvc.kube.readiness import is_observed

    history = cluster.run(read)
    if output:
        print_objects(history.earlier, output)
    else:
        print_table(["REVISION", "REPLACED", "CHANGE"], [*_rows(history)])
    if not is_observed(history.service):
        click.echo(f"Warning: no manager has seen the last change of {name} yet, so it is not kept", err=True)


def _rows(history: History) -> Iterator[list[str]]:
    from isvc.apiserver.tables.columns import age
    from isvc.insight.operations.history import summary
    from isvc.kube.objects import generation_of

    specs = history.specs
    for number, revision in enumerate(history.earlier):
        yield [str(revision["revision"]), f"{age(revision)} ago", summary(specs[number], specs[number + 1])]
    yield [str(generation_of(history.service)), "current", ""]
